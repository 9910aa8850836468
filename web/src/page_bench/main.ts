// A static page of `py-ort bench --page`: from navigation to a model's first outputs, then steady runs. Which of the
// two engines runs it is a matter of its settings alone, because the API is the same.

interface Feed {
  readonly name: string;
  readonly type: string;
  readonly dims: readonly number[];
  readonly offset: number;
  readonly size: number;
}

interface Settings {
  readonly module: string;
  readonly model: string;
  readonly provider: string;
  readonly threads: number;
  readonly feeds: readonly Feed[];
  readonly runs: number;
}

interface Value {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayBufferView;
}

interface Engine {
  readonly env: { readonly wasm: { numThreads?: number } };
  readonly Tensor: new (type: string, data: ArrayBufferView, dims: readonly number[]) => Value;
  readonly InferenceSession: {
    create(
      model: string,
      options: object,
    ): Promise<{ run(feeds: Readonly<Record<string, Value>>): Promise<Readonly<Record<string, Value>>> }>;
  };
}

const ARRAYS: {
  readonly [type: string]: new (buffer: ArrayBuffer, offset: number, length: number) => ArrayBufferView;
} = {
  float32: Float32Array,
  float64: Float64Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const tell = (body: object) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });

async function main({ module, model, provider, threads, feeds, runs }: Settings): Promise<object> {
  const contents = fetch('../feeds.bin').then((response) => response.arrayBuffer());
  const { env, InferenceSession, Tensor } = (await import(new URL(module, location.href).href)) as Engine;
  const loaded_ms = performance.now();
  env.wasm.numThreads = threads;
  const session = await InferenceSession.create(model, { executionProviders: [provider] });
  const created_ms = performance.now();
  const bytes = await contents;
  const given = () =>
    Object.fromEntries(
      feeds.map(({ name, type, dims, offset, size }) => {
        const { BYTES_PER_ELEMENT: width } = ARRAYS[type] as unknown as { BYTES_PER_ELEMENT: number };
        return [name, new Tensor(type, new ARRAYS[type](bytes, offset, size / width), dims)];
      }),
    );
  let outputs = await session.run(given());
  const first_ms = performance.now();
  const steady_ms: number[] = [];
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    outputs = await session.run(given());
    steady_ms.push(performance.now() - start);
  }
  const sums = Object.entries(outputs).map(([name, { type, dims, data }]) => [name, type, dims, sumOf(data)]);
  return { loaded_ms, created_ms, first_ms, steady_ms, sums };
}

/** Of magnitudes: the same for both engines, but for rounding. */
function sumOf(data: ArrayBufferView): number {
  return Array.from(data as unknown as ArrayLike<number>).reduce((sum, value) => sum + Math.abs(Number(value)), 0);
}

const settings = JSON.parse(document.querySelector('#settings')!.textContent!) as Settings;
main(settings).then(tell, (error: Error) => tell({ error: `${error.message ?? error}` }));
