// Rows of logits on the GPU, and a shader that computes something from each. Steps of one new token write their logits
// where the shader reads them; the needed rows of other steps are copied there.
import type { Shader, Spec } from '../../../contract/kernel';
import type { GpuCommand, GpuSegment } from '../segment';
import type { Readback } from '../readback';
import type { ShaderBinding } from '../shader';
import type { GpuSession } from '../gpu_session';
import type { TensorOnGpu } from '../../../wire/values';
import type { LogitsForm, LogitsReader } from '../../../generate/device_part';
import { storageBytes } from '../../../generate/outside';

/** A shader's buffer besides logits and states. */
export interface Bound extends ShaderBinding {
  readonly id: number;
}

interface Program {
  readonly shader: Shader<Spec>;
  readonly spec: Spec;
  readonly bound: readonly Bound[];
  readonly uniforms: { readonly [name: string]: number };
  readonly floats: readonly string[];
}

export abstract class GpuLogits implements LogitsReader {
  private readonly buffers: number[] = [];
  private readonly logits: number;
  /** For each row its step, and the start of its logits, in elements. */
  private readonly states: number;
  private readonly readback: Readback;
  private segment: GpuSegment | undefined;
  private starts: readonly number[] = [];

  protected constructor(
    protected readonly gpu: GpuSession,
    protected readonly form: LogitsForm,
  ) {
    this.readback = new gpu.tools.Readback(gpu.provider.gpu, gpu.memory.caches.default, 1 << 20);
    // Rows may start in the middle of a word.
    this.logits = this.buffer('logits', form.rows * (form.vocabulary + 2) * this.elementBytes);
    this.states = this.buffer('states', form.rows * 8);
  }

  /** Waits until its shader is compiled; frees it if that fails. */
  protected static async ready<T extends GpuLogits>(made: T): Promise<T> {
    try {
      await made.prepare();
      return made;
    } catch (error) {
      made.release();
      throw error;
    }
  }

  protected abstract prepare(): Promise<void>;

  private get elementBytes(): number {
    return this.gpu.provider.gpu.elements.size(this.form.dtype);
  }

  /** The number of threads per row. */
  protected get threads(): number {
    return this.gpu.provider.gpu.traits.software ? 16 : 256;
  }

  protected buffer(label: string, bytes: number): number {
    const { buffers, caches } = this.gpu.provider;
    const id = buffers.allocate(storageBytes(bytes), caches.storage, label, true);
    this.buffers.push(id);
    return id;
  }

  protected write(id: number, words: Uint32Array<ArrayBuffer>): void {
    this.gpu.provider.gpu.write(this.gpu.provider.buffers.get(id).buffer, 0, new Uint8Array(words.buffer));
  }

  /** Compiles the shader, which has a workgroup for each row. */
  protected async compile({ shader, spec, bound, uniforms, floats }: Program): Promise<void> {
    const { pipelines, gpu: device, buffers } = this.gpu.provider;
    const { compileSegment, elementType, packUniforms } = this.gpu.tools;
    const { dtype, rows, vocabulary } = this.form;
    const [storage, packing] = [device.elements.storage(dtype), device.elements.packing(dtype)];
    const packed = packing && { packing, lanes: 1 as const };
    const bindings: readonly Bound[] = [
      { name: 'logits', type: elementType(storage, 1), packed, writable: false, id: this.logits },
      ...bound,
      { name: 'states', type: 'u32', writable: true, id: this.states },
    ];
    const packedUniforms = packUniforms({ vocabulary, ...uniforms }, floats);
    const pipeline = pipelines.get({
      shader,
      spec,
      bindings: bindings.map(({ id: _, ...binding }) => binding),
      uniforms: packedUniforms.fields,
    });
    const command: GpuCommand = {
      kind: 'dispatch',
      program: pipeline,
      bindings: bindings.map(({ id }) => ({ id, bytes: storageBytes(buffers.get(id).bytes) })),
      written: bindings.filter(({ writable }) => writable).length,
      uniforms: packedUniforms.bytes,
      workgroups: [rows, 1, 1],
    };
    this.segment = await compileSegment(device, this.gpu.memory.caches.uniform, [command], (id) => buffers.get(id));
  }

  get target(): TensorOnGpu {
    const { rows, vocabulary, dtype } = this.form;
    return { dtype, dims: [rows, 1, vocabulary], gpuId: this.logits };
  }

  /**
   * Runs the shader on logits [batch, rows, vocabulary], or on those in `target`.
   *
   * @param last for each batch the row to use.
   * @returns the first bytes of a buffer, once they are there.
   */
  protected read(
    step: number,
    logits: TensorOnGpu | undefined,
    last: readonly number[],
    { id, bytes }: { readonly id: number; readonly bytes: number },
  ): Promise<ArrayBuffer> {
    const { gpu: device, buffers } = this.gpu.provider;
    const first = device.device.createCommandEncoder();
    const { vocabulary } = this.form;
    const starts = logits ? this.gather(first, logits, last) : last.map((_, row) => row * vocabulary);
    // Shaders count steps themselves.
    if (String(starts) !== String(this.starts)) {
      this.write(this.states, Uint32Array.from(starts.flatMap((start) => [step, start])));
      this.starts = starts;
    }
    const encoder = this.segment!.encode(first);
    const pending = this.readback.encode(encoder, [{ ...buffers.get(id), bytes }]);
    device.submit([encoder.finish()]);
    return pending.finish(([found]) => found.slice().buffer);
  }

  /** Copies the needed rows to `logits`; returns the start of each there, in elements. */
  private gather(encoder: GPUCommandEncoder, logits: TensorOnGpu, last: readonly number[]): number[] {
    const { buffers } = this.gpu.provider;
    const { vocabulary } = this.form;
    const [source, target] = [buffers.get(logits.gpuId), buffers.get(this.logits)];
    const size = this.elementBytes;
    // Copies have whole words.
    const stride = Math.ceil(((vocabulary + 1) * size) / 4) * 4;
    return last.map((row, i) => {
      const first = (i * logits.dims[1] + row) * vocabulary * size;
      const from = Math.floor(first / 4) * 4;
      const end = Math.ceil((first + vocabulary * size) / 4) * 4;
      encoder.copyBufferToBuffer(source.buffer, source.offset + from, target.buffer, i * stride, end - from);
      return (i * stride + first - from) / size;
    });
  }

  /** In reverse order: the next one gets the same buffers, and the recordings that use them. */
  release(): void {
    this.segment?.destroy();
    this.readback.destroy();
    for (const id of this.buffers.splice(0).reverse()) this.gpu.provider.buffers.free(id);
  }
}
