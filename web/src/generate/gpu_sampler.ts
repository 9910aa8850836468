// Choosing tokens on the GPU. The choice is written where the next step's tokens are read, so that only copies of it
// come down, and nobody need wait for them before the next step.
import { SAMPLING_SHADER } from 'virtual:sampling';
import type { DType } from '../schema';
import { storageBytes } from '../gpu/memory_plan';
import { type PendingReadback, Readback } from '../gpu/readback';
import { type CompiledSegment, type Command, compileSegment } from '../gpu/segment';
import { elementType, packUniforms, type ShaderBinding } from '../gpu/shader';
import type { GpuSession } from '../jsep/gpu_session';
import type { TensorOnGpu } from '../wire/values';
import type { Sampling } from './generate_options';

/** Of what a sampler is made. */
export interface SamplerOptions {
  readonly sampling: Sampling;
  readonly vocabulary: number;
  readonly logits: DType;
  /** Tokens so far of each row. */
  readonly context: readonly (readonly number[])[];
  readonly barred: { readonly tokens: readonly number[]; readonly steps: number };
}

export class GpuSampler {
  /** The tokens that were chosen last, one for each row. */
  readonly ids: number;
  /** Where rows of logits are read. */
  readonly logits: number;
  private readonly buffers: number[] = [];
  private readonly states: number;
  private readonly readback: Readback;
  private segment: CompiledSegment | undefined;
  private readonly batch: number;

  private constructor(
    private readonly gpu: GpuSession,
    private readonly options: SamplerOptions,
  ) {
    const { context, vocabulary } = options;
    this.batch = context.length;
    this.readback = new Readback(gpu.provider.gpu, gpu.memory.caches.default, 1 << 20);
    this.ids = this.buffer('tokens', this.batch * 4);
    // Rows may begin in the middle of a word.
    this.logits = this.buffer('logits', this.batch * (vocabulary + 2) * this.elementBytes);
    this.states = this.buffer('states', this.batch * 8);
  }

  static async make(gpu: GpuSession, options: SamplerOptions): Promise<GpuSampler> {
    const sampler = new GpuSampler(gpu, options);
    try {
      await sampler.compile();
      return sampler;
    } catch (error) {
      sampler.release();
      throw error;
    }
  }

  get elementBytes(): number {
    return this.gpu.provider.gpu.elements.size(this.options.logits);
  }

  private buffer(label: string, bytes: number): number {
    const { buffers, caches } = this.gpu.provider;
    const id = buffers.allocate(storageBytes(bytes), caches.storage, label, true);
    this.buffers.push(id);
    return id;
  }

  private async compile(): Promise<void> {
    const { gpu, options } = this;
    const { pipelines, gpu: device, buffers } = gpu.provider;
    const { sampling, vocabulary, logits: dtype, barred } = options;
    const { sample, topK, topP, repetitionPenalty, temperature, seed } = sampling;
    const marked = repetitionPenalty !== 1 || (barred.tokens.length > 0 && barred.steps > 0);
    const cut = { topK: sample && topK > 0 && topK < vocabulary, topP: sample && topP < 1 };
    const [storage, packing] = [device.elements.storage(dtype), device.elements.packing(dtype)];
    const bindings: [ShaderBinding, number][] = [
      [
        {
          name: 'logits',
          type: elementType(storage, 1),
          packed: packing && { packing, lanes: 1 },
          writable: false,
        },
        this.logits,
      ],
      [{ name: 'ids', type: 'i32', writable: true }, this.ids],
      [{ name: 'states', type: 'u32', writable: true }, this.states],
    ];
    if (marked) bindings.push([{ name: 'marks', type: 'u32', writable: true }, this.marks()]);
    const uniforms = packUniforms(
      {
        vocabulary,
        barred_steps: barred.steps,
        penalty: repetitionPenalty,
        inverse_temperature: 1 / temperature,
        top_k: topK,
        top_p: topP,
        seed_low: seed >>> 0,
        seed_high: Math.floor(seed / 2 ** 32) >>> 0,
      },
      ['penalty', 'inverse_temperature', 'top_p'],
    );
    const pipeline = pipelines.get({
      shader: SAMPLING_SHADER,
      spec: { sample, ...cut, marks: marked, threads: device.traits.software ? 16 : 256 },
      bindings: bindings.map(([binding]) => binding),
      uniforms: uniforms.fields,
    });
    const command: Command = {
      kind: 'dispatch',
      pipeline,
      bindings: bindings.map(([, id]) => ({ id, bytes: storageBytes(buffers.get(id).bytes) })),
      written: bindings.length - 1,
      uniforms: uniforms.bytes,
      workgroups: [this.batch, 1, 1],
    };
    this.segment = await compileSegment(device, gpu.memory.caches.uniform, [command], (id) => buffers.get(id));
  }

  private marks(): number {
    const { vocabulary, context, barred } = this.options;
    const marks = new Uint32Array(this.batch * vocabulary);
    // A token of no logit would be one of the next row.
    const ends = barred.tokens.filter((token) => token < vocabulary);
    context.forEach((tokens, row) => {
      for (const token of tokens) marks[row * vocabulary + token] |= 1;
      for (const token of ends) marks[row * vocabulary + token] |= 2;
    });
    const id = this.buffer('marks', marks.byteLength);
    this.gpu.provider.gpu.write(this.gpu.provider.buffers.get(id).buffer, 0, new Uint8Array(marks.buffer));
    return id;
  }

  /** Where runs of one new slot leave their logits: [batch, 1, vocabulary]. */
  get target(): TensorOnGpu {
    const { logits, vocabulary } = this.options;
    return { dtype: logits, dims: [this.batch, 1, vocabulary], gpuId: this.logits };
  }

  /**
   * Chooses of logits [batch, rows, vocabulary], or of those in `target`.
   *
   * @param last of each batch the row that counts.
   * @returns the tokens, once their bytes are there.
   */
  choose(step: number, logits: TensorOnGpu | undefined, last: readonly number[]): Promise<number[]> {
    const { gpu: device, buffers } = this.gpu.provider;
    const first = device.device.createCommandEncoder();
    const { vocabulary } = this.options;
    const starts = logits ? this.gather(first, logits, last) : last.map((_, row) => row * vocabulary);
    // The first choice, and the one after it, read elsewhere than the one before.
    if (step < 2) {
      const states = Uint32Array.from(starts.flatMap((start) => [step, start]));
      device.write(buffers.get(this.states).buffer, 0, new Uint8Array(states.buffer));
    }
    const encoder = this.segment!.encode(first);
    const pending = this.readback.encode(encoder, [{ ...buffers.get(this.ids), bytes: this.batch * 4 }]);
    device.submit([encoder.finish()]);
    return tokensOf(pending);
  }

  /** Copies the rows that count to `logits`; gives where each begins there, in elements. */
  private gather(encoder: GPUCommandEncoder, logits: TensorOnGpu, last: readonly number[]): number[] {
    const { buffers } = this.gpu.provider;
    const { vocabulary } = this.options;
    const [source, target] = [buffers.get(logits.gpuId), buffers.get(this.logits)];
    const size = this.elementBytes;
    // Copies are of whole words.
    const stride = Math.ceil(((vocabulary + 1) * size) / 4) * 4;
    return last.map((row, i) => {
      const first = (i * logits.dims[1] + row) * vocabulary * size;
      const from = Math.floor(first / 4) * 4;
      const end = Math.ceil((first + vocabulary * size) / 4) * 4;
      encoder.copyBufferToBuffer(source.buffer, source.offset + from, target.buffer, i * stride, end - from);
      return (i * stride + first - from) / size;
    });
  }

  /** The other way round than they were taken: the next sampler gets the same ones, and what is recorded with them. */
  release(): void {
    this.segment?.destroy();
    this.readback.destroy();
    for (const id of this.buffers.splice(0).reverse()) this.gpu.provider.buffers.free(id);
  }
}

function tokensOf(pending: PendingReadback): Promise<number[]> {
  return pending.finish(([bytes]) => [...new Int32Array(bytes.slice().buffer)]);
}
