// The page in which `py-ort export --check` runs a model: jobs in, outputs out, over HTTP.
import { ErrorCode, InferenceSession, type OnnxValue, RuntimeError, Tensor } from '../index';
import { dtypeOfType, fromBytes, toBytes, typeOfDtype } from '../api/elements';

interface Job {
  readonly model: string;
  readonly provider: string;
  readonly dimensions: { readonly [name: string]: number };
  readonly feeds: readonly {
    readonly name: string;
    readonly dtype: number;
    readonly dims: number[];
    readonly url: string;
  }[];
}

/** A tensor has the place of its bytes after the JSON. */
type Told = { dtype: number; dims: readonly number[]; offset: number; size: number } | readonly Told[] | null;

class Answer {
  private readonly pieces: Uint8Array[] = [];
  private size = 0;

  tell(value: OnnxValue): Told {
    if (value === null) return null;
    if (!(value instanceof Tensor)) return (value as readonly OnnxValue[]).map((item) => this.tell(item));
    const bytes = toBytes(value.data);
    this.pieces.push(bytes);
    this.size += bytes.byteLength;
    const { dims, type } = value;
    return { dtype: dtypeOfType(type), dims, offset: this.size - bytes.byteLength, size: bytes.byteLength };
  }

  /** Length of the JSON, the JSON, all bytes. */
  body(told: object): Blob {
    const text = new TextEncoder().encode(JSON.stringify(told));
    return new Blob([new Uint32Array([text.byteLength]), text, ...(this.pieces as Uint8Array<ArrayBuffer>[])]);
  }
}

async function feed({ dtype, dims, url }: Job['feeds'][number]): Promise<Tensor> {
  const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
  const type = typeOfDtype(dtype);
  return new Tensor(type, fromBytes(type, bytes) as never, dims);
}

async function run({ model, provider, dimensions, feeds }: Job): Promise<Blob> {
  const answer = new Answer();
  let session: InferenceSession | undefined;
  try {
    const given = Object.fromEntries(
      await Promise.all(feeds.map(async (each) => [each.name, await feed(each)] as const)),
    );
    const started = performance.now();
    const options = { executionProviders: [provider], freeDimensionOverrides: dimensions };
    session = await InferenceSession.create(new URL(model, location.href), options);
    const loaded = performance.now();
    const outputs = await session.run(given);
    const ran = performance.now();
    await session.run(given);
    const again = performance.now();
    const told = session.outputNames.map((name) => answer.tell(outputs[name]));
    return answer.body({ outputs: told, times: [loaded - started, ran - loaded, again - ran] });
  } catch (error) {
    const code = error instanceof RuntimeError ? ErrorCode[error.code] : 'internal';
    return answer.body({ code, error: error instanceof Error ? error.message : String(error) });
  } finally {
    await session?.release().catch(() => undefined);
  }
}

const jobs = (await (await fetch('jobs')).json()) as readonly Job[];
for (const [number, job] of jobs.entries()) await fetch(`results/${number}`, { method: 'POST', body: await run(job) });
