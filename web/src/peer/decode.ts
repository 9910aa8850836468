// A decoder in onnxruntime-web, with a loop like transformers.js': each run's GPU buffers are the next one's inputs,
// logits are downloaded, and the next token is the largest.
import type { Ort, OrtSession, OrtTensor } from './ort';

export interface DecodeCache {
  /** Names of its input and output. */
  readonly past: string;
  readonly present: string;
  /** The dims of an empty cache. */
  readonly dims: readonly number[];
}

export interface DecodeTask {
  readonly prompt: readonly number[];
  /** Tokens to generate after the prompt's first one. */
  readonly count: number;
  /** The types of inputs other than caches. */
  readonly inputs: { readonly [name: string]: string };
  /** The type of caches. */
  readonly type: string;
  readonly caches: readonly DecodeCache[];
}

/** Times in milliseconds. */
export interface Decoded {
  readonly prompt_ms: number;
  readonly step_ms: readonly number[];
  readonly words: readonly number[];
}

type TensorOf = (type: string, dims: readonly number[], values: readonly number[]) => OrtTensor;

export async function decode(
  ort: Ort,
  session: OrtSession,
  task: DecodeTask,
  arrays: { readonly [type: string]: (new (length: number) => ArrayBufferView) | undefined },
): Promise<Decoded> {
  const tensor: TensorOf = (type, dims, values) => {
    const array = new arrays[type]!(values.length) as unknown as { [i: number]: number | bigint } & ArrayBufferView;
    values.forEach((value, i) => (array[i] = type.endsWith('64') ? BigInt(value) : value));
    return new ort.Tensor(type, array, dims);
  };
  const caches: Record<string, OrtTensor> = {};
  for (const { past, dims } of task.caches) caches[past] = tensor(task.type, dims, []);
  const words: number[] = [];
  const times: number[] = [];
  let given = task.prompt;
  let past = 0;
  for (let i = 0; i <= task.count; i++) {
    const start = performance.now();
    const results = await session.run({ ...numbers(task, given, past, tensor), ...caches });
    for (const { past: name, present } of task.caches) {
      caches[name].dispose();
      caches[name] = results[present];
    }
    const word = largest(results.logits);
    times.push(performance.now() - start);
    words.push(word);
    past += given.length;
    given = [word];
  }
  for (const cache of Object.values(caches)) cache.dispose();
  return { prompt_ms: times[0], step_ms: times.slice(1), words };
}

/** The inputs other than caches. */
function numbers(
  { inputs }: DecodeTask,
  words: readonly number[],
  past: number,
  tensor: TensorOf,
): Record<string, OrtTensor> {
  const total = past + words.length;
  const values: { readonly [name: string]: readonly [readonly number[], readonly number[]] } = {
    input_ids: [[1, words.length], words],
    attention_mask: [[1, total], Array.from({ length: total }, () => 1)],
    position_ids: [[1, words.length], words.map((_, i) => past + i)],
  };
  return Object.fromEntries(
    Object.entries(inputs).map(([name, type]) => {
      const [dims, elements] = values[name] ?? [[], [1]];
      return [name, tensor(type, dims, elements)];
    }),
  );
}

/** The index of the largest number in the last row. */
function largest({ dims, data }: OrtTensor): number {
  const row = (data as Float32Array).subarray(-dims[dims.length - 1]);
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}
