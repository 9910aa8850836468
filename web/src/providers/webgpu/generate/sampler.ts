// Chooses tokens on the GPU. The choice is written where the next step reads its tokens. Only copies of it are
// downloaded, and the next step does not wait for them.
import { SAMPLING_SHADER } from './sampling_shader';
import type { GpuSession } from '../gpu_session';
import type { TensorOnGpu } from '../../../wire/values';
import type { LogitsForm, Sampler, SamplerOptions } from '../../../generate/device_part';
import { GpuLogits } from './logits';

export class GpuSampler extends GpuLogits implements Sampler {
  readonly ids: number;

  private constructor(
    gpu: GpuSession,
    form: LogitsForm,
    private readonly options: SamplerOptions,
  ) {
    super(gpu, form);
    this.ids = this.buffer('tokens', form.rows * 4);
  }

  static make(gpu: GpuSession, form: LogitsForm, options: SamplerOptions): Promise<GpuSampler> {
    return GpuLogits.ready(new GpuSampler(gpu, form, options));
  }

  protected async prepare(): Promise<void> {
    const { vocabulary } = this.form;
    const { sampling, barred } = this.options;
    const { sample, topK, topP, repetitionPenalty, temperature, seed } = sampling;
    const marked = repetitionPenalty !== 1 || (barred.tokens.length > 0 && barred.steps > 0);
    const cut = { topK: sample && topK > 0 && topK < vocabulary, topP: sample && topP < 1 };
    const marks = marked ? [{ name: 'marks', type: 'u32', writable: true, id: this.marks() }] : [];
    await this.compile({
      shader: SAMPLING_SHADER,
      spec: { sample, ...cut, marks: marked, threads: this.threads },
      bound: [{ name: 'ids', type: 'i32', writable: true, id: this.ids }, ...marks],
      uniforms: {
        barred_steps: barred.steps,
        penalty: repetitionPenalty,
        inverse_temperature: 1 / temperature,
        top_k: topK,
        top_p: topP,
        seed_low: seed >>> 0,
        seed_high: Math.floor(seed / 2 ** 32) >>> 0,
      },
      floats: ['penalty', 'inverse_temperature', 'top_p'],
    });
  }

  private marks(): number {
    const { rows, vocabulary } = this.form;
    const { context, barred } = this.options;
    const marks = new Uint32Array(rows * vocabulary);
    // A token beyond the logits would mark one of the next row.
    const ends = barred.tokens.filter((token) => token < vocabulary);
    context.forEach((tokens, row) => {
      for (const token of tokens) marks[row * vocabulary + token] |= 1;
      for (const token of ends) marks[row * vocabulary + token] |= 2;
    });
    const id = this.buffer('marks', marks.byteLength);
    this.write(id, marks);
    return id;
  }

  async choose(step: number, logits: TensorOnGpu | undefined, last: readonly number[]): Promise<number[]> {
    return [...new Int32Array(await this.read(step, logits, last, { id: this.ids, bytes: this.form.rows * 4 }))];
  }
}
