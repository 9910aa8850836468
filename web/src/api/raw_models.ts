// Models that were not exported, or were exported for another version, and other ways to run them. This module is part
// of local_engine.ts: a chunk of its own would split the API further, which all pages load.
import { ErrorCode } from '../schema';
import { invalid, messageOf, RuntimeError } from '../errors';
import { host } from '../host';
import { headerSize, PREFIX_BYTES, readHeader } from '../package/header';
import { openFile } from '../package/model_file';
import { isOnnx, type ModelFile } from '../package/model_kinds';
import { compiledUrl } from './compiler_client';
import type { Engine, Listener } from './engine';
import { env } from './env';
import type { ModelCompiler } from './env_types';
import { FallbackEngine } from './fallback_engine';
import type { InferenceSessionOptions } from './session_options';
import { warnOnce } from './warnings';

/** A model that the runtime cannot run directly. */
interface RawModel {
  /** A description, for errors. */
  readonly what: string;
  readonly file: string | Uint8Array<ArrayBuffer>;
}

const isUrl = (file: ModelFile): file is string | URL => typeof file === 'string' || file instanceof URL;

/** An ONNX file, or one in the ORT format. */
const isRaw = (prefix: Uint8Array) => isOnnx(prefix) || String.fromCharCode(...prefix.subarray(4, 8)) === 'ORTM';

async function beginsRaw(url: string, signal?: AbortSignal): Promise<boolean> {
  try {
    const { reader } = await openFile(url, signal);
    const prefix = await reader.read(PREFIX_BYTES);
    reader.cancel();
    return isRaw(prefix);
  } catch {
    return false;
  }
}

/** Returns the raw model in a file that could not be opened; undefined if the file has another fault. */
async function rawModelOf(model: ModelFile, signal?: AbortSignal): Promise<RawModel | undefined> {
  const { reader, what } = await openFile(model, signal);
  try {
    const prefix = await reader.read(PREFIX_BYTES);
    if (isRaw(prefix)) return await rawFile(model, `${what} is an ONNX file`);
    if (!isUrl(model)) return undefined;
    const read = async () => void readHeader(prefix, await reader.read(headerSize(prefix, what)), what);
    return await besideOther(host.resolve(String(model)), read, signal);
  } finally {
    reader.cancel();
  }
}

/** A model by its URL, if others can fetch it, otherwise by its bytes. */
async function rawFile(model: ModelFile, what: string): Promise<RawModel> {
  if (isUrl(model)) {
    const url = host.resolve(String(model));
    if (/^https?:/.test(url)) return { what, file: url };
    return { what, file: new Uint8Array(await (await host.fetch(url)).arrayBuffer()) };
  }
  const bytes = model instanceof Blob ? new Uint8Array(await model.arrayBuffer()) : new Uint8Array(model);
  return { what: `${what} of ${bytes.byteLength} bytes`, file: bytes };
}

/** The ONNX file next to a `.pyort` file of another version. */
async function besideOther(
  url: string,
  read: () => Promise<void>,
  signal?: AbortSignal,
): Promise<RawModel | undefined> {
  try {
    await read();
    return undefined;
  } catch (error) {
    if (!(error instanceof RuntimeError && error.code === ErrorCode.not_implemented)) return undefined;
    const onnx = url.replace(/\.pyort(?=$|[?#])/, '.onnx');
    if (onnx === url || !(await beginsRaw(onnx, signal))) return undefined;
    return await rawFile(onnx, `${url} is of another version, and ${onnx} is beside it`);
  }
}

/** An engine, and a function that loads the same model in this thread. */
interface Started {
  readonly engine: Engine;
  readonly here: () => Promise<Engine>;
}

const ADVICE = '`py-ort export MODEL.onnx` writes a .pyort file, which runs here';

async function onFallback(
  raw: RawModel,
  load: () => unknown,
  options: InferenceSessionOptions,
  listener: Listener,
): Promise<Started> {
  try {
    const engine = await FallbackEngine.create(load, raw.file, options);
    warnOnce(listener, `${raw.what}: the engine of env.fallback runs it. ${ADVICE}`);
    return { engine, here: async () => engine };
  } catch (error) {
    listener.signal?.throwIfAborted();
    const code = error instanceof RuntimeError ? error.code : ErrorCode.fail;
    const text = `${raw.what}, and the engine of env.fallback cannot run it: ${messageOf(error)}`;
    throw new RuntimeError(code, text, {}, { cause: error });
  }
}

/**
 * Makes a session of a model that the runtime refused: from the result of `env.compiler`, otherwise by `env.fallback`.
 *
 * @param start makes a session of a URL.
 * @throws the error of the refusal, if nothing else can run it.
 */
export async function openRaw(
  refused: unknown,
  model: ModelFile,
  options: InferenceSessionOptions,
  listener: Listener,
  start: (url: string, options: InferenceSessionOptions) => Promise<Started>,
): Promise<Started> {
  const raw = await rawModelOf(model, listener.signal).catch(() => undefined);
  listener.signal?.throwIfAborted();
  if (!raw) throw refused;
  const { compiler, fallback } = checkedHelpers();
  if (compiler === undefined) return onFallback(raw, fallback!, options, listener);
  try {
    const { cache = true } = options;
    const url = await compiledUrl(compiler, raw.file, cache, listener);
    listener.log(1, 'session', `${raw.what}: env.compiler has compiled it`);
    return await start(url, { ...options, cache: cache && url.startsWith('http') });
  } catch (error) {
    listener.signal?.throwIfAborted();
    const why = `${raw.what}, and env.compiler does not help: ${messageOf(error)}`;
    if (!fallback) throw new RuntimeError(ErrorCode.fail, why, {}, { cause: error });
    warnOnce(listener, why);
    return onFallback(raw, fallback, options, listener);
  }
}

/** `env.compiler` and `env.fallback`; undefined where they are off. */
function checkedHelpers(): { readonly compiler?: string | URL | ModelCompiler; readonly fallback?: () => unknown } {
  const [compiler, fallback] = [env.compiler ?? undefined, env.fallback ?? undefined];
  const isServer = compiler instanceof URL || (typeof compiler === 'string' && compiler !== '');
  const compiles = typeof compiler === 'object' && typeof (compiler as Partial<ModelCompiler>).compile === 'function';
  if (compiler !== undefined && !isServer && !compiles)
    throw invalid(`env.compiler is the URL of a compile server, or an object with compile, not ${shown(compiler)}`);
  if (fallback !== undefined && typeof fallback !== 'function')
    throw invalid(`env.fallback is a function, such as () => import('onnxruntime-web'), not ${shown(fallback)}`);
  return { compiler, fallback };
}

function shown(value: unknown): string {
  if (typeof value === 'object') return Object.prototype.toString.call(value);
  return typeof value === 'string' ? `"${value}"` : String(value);
}
