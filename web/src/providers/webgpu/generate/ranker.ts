// The likeliest next tokens of each row, from logits on the GPU: only these tokens are downloaded.
import { RANKING_SHADER } from './ranking_shader';
import type { GpuSession } from '../gpu_session';
import type { TensorOnGpu } from '../../../wire/values';
import type { LogitsForm, Ranker } from '../../../generate/device_part';
import { GpuLogits } from './logits';
import { NAN, NOTHING } from '../../../generate/no_token';
import { marked, type Ranked, type RankingOptions } from '../../../generate/ranking';

export class GpuRanker extends GpuLogits implements Ranker {
  private readonly found: number;
  private readonly seen: number | undefined;
  /** Words of one row of the result. */
  private readonly words: number;

  private constructor(
    gpu: GpuSession,
    form: LogitsForm,
    private readonly options: RankingOptions,
  ) {
    super(gpu, form);
    this.words = 2 + 2 * options.count;
    this.found = this.buffer('found', form.rows * this.words * 4);
    this.seen = options.penalty === 1 ? undefined : this.buffer('seen', form.rows * this.seenWords * 4);
  }

  static make(gpu: GpuSession, form: LogitsForm, options: RankingOptions): Promise<GpuRanker> {
    return GpuLogits.ready(new GpuRanker(gpu, form, options));
  }

  private get seenWords(): number {
    return Math.ceil(this.form.vocabulary / 32);
  }

  protected async prepare(): Promise<void> {
    const { found, seen, options } = this;
    const penalized = seen !== undefined;
    await this.compile({
      shader: RANKING_SHADER,
      spec: { seen: penalized, threads: this.threads },
      bound: [
        ...(penalized ? [{ name: 'seen', type: 'u32', writable: false, id: seen }] : []),
        { name: 'found', type: 'u32', writable: true, id: found },
      ],
      uniforms: { wanted: options.count, words: this.seenWords, penalty: options.penalty },
      floats: ['penalty'],
    });
  }

  async rank(
    logits: TensorOnGpu | undefined,
    last: readonly number[],
    written: readonly (readonly number[])[],
  ): Promise<Ranked[]> {
    const { form, words } = this;
    if (this.seen !== undefined) {
      const all = new Uint32Array(form.rows * this.seenWords);
      written.forEach((tokens, row) => all.set(marked(tokens, form.vocabulary), row * this.seenWords));
      this.write(this.seen, all);
    }
    const bytes = await this.read(0, logits, last, { id: this.found, bytes: form.rows * words * 4 });
    const [integers, floats] = [new Int32Array(bytes), new Float32Array(bytes)];
    return last.map((_, row) => {
      const start = row * words;
      const fault = integers[start];
      if (fault === NAN || fault === NOTHING) return fault;
      return Array.from({ length: integers[start + 1] }, (_, k) => ({
        token: integers[start + 2 + 2 * k],
        score: floats[start + 3 + 2 * k],
      }));
    });
  }
}
