// Compiles the core's WebAssembly, while it is being fetched where possible. A page may do this while its worker
// starts.
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import { fetched } from '../wire/fetching';
import { notLoaded } from './late_file';
import type { CompiledCore, CompiledMicrokernels, CoreFiles, Simd } from './files';
import { onSharedMemory } from './shared_memory';

/** A module of one function, the f32x4.relaxed_madd of its three parameters. */
const PROBE = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 8, 1, 0x60, 3, 0x7b, 0x7b, 0x7b, 1, 0x7b, 3, 2, 1, 0, 10, 13, 1, 11, 0, 0x20, 0,
  0x20, 1, 0x20, 2, 0xfd, 0x85, 2, 0x0b,
]);

const compileBytes = (bytes: Uint8Array<ArrayBuffer>, shared: boolean) =>
  WebAssembly.compile(shared ? onSharedMemory(bytes) : bytes);

async function compile(source: URL | Uint8Array, shared: boolean): Promise<WebAssembly.Module> {
  if (!(source instanceof URL)) return compileBytes(source.slice(), shared);
  const response = await fetched(source);
  // Browsers cache code compiled in this way for the next visit.
  if (!shared && response.headers.get('Content-Type') === 'application/wasm')
    return WebAssembly.compileStreaming(response);
  return compileBytes(new Uint8Array(await response.arrayBuffer()), shared);
}

/**
 * A module that sessions load when they need it.
 *
 * @param member of `env.wasm.wasmPaths`, which names its URL.
 */
export async function compileBeside(member: string, url: URL, shared: boolean): Promise<WebAssembly.Module> {
  try {
    return await compile(url, shared);
  } catch (error) {
    throw notLoaded(ErrorCode.fail, 'kernels on the CPU', url, error, member);
  }
}

/** Of micro-kernels, or in words why there is none. */
async function sideModule(url: URL, shared: boolean): Promise<WebAssembly.Module | string> {
  try {
    const module = await compile(url, shared);
    const empty = `${url.pathname} is empty: py_ort was built without clang and lld 19`;
    return WebAssembly.Module.exports(module).length > 0 ? module : empty;
  } catch (error) {
    return `${url.pathname} could not be loaded: ${messageOf(error)}`;
  }
}

/** Fetches and compiles micro-kernels. "auto": of relaxed SIMD if the browser has it. */
export async function compileMicrokernels(
  { relaxedSimd, simd128 }: Pick<CoreFiles, 'relaxedSimd' | 'simd128'>,
  shared: boolean,
  simd: Simd | 'auto',
): Promise<CompiledMicrokernels> {
  let withoutRelaxed: string | undefined;
  if (simd !== 'fixed') {
    const relaxed = WebAssembly.validate(PROBE)
      ? await sideModule(relaxedSimd, shared)
      : 'this browser has no relaxed SIMD';
    if (typeof relaxed !== 'string') return { simd: 'relaxed', module: relaxed };
    if (simd === 'relaxed') {
      throw new RuntimeError(
        ErrorCode.not_implemented,
        `option simd=relaxed of wasm: ${relaxed}; "auto" takes plain SIMD then`,
      );
    }
    withoutRelaxed = relaxed;
  }
  const fixed = await sideModule(simd128, shared);
  if (typeof fixed !== 'string') return { simd: 'fixed', module: fixed, withoutRelaxed };
  throw new RuntimeError(ErrorCode.fail, `the inner loops of nodes on the CPU: ${fixed}`);
}

/** Fetches and compiles the core's modules, with the micro-kernels that are likely to be needed. */
export async function compileCore(
  files: Pick<CoreFiles, 'wasm' | 'relaxedSimd' | 'simd128' | 'likely'>,
  shared: boolean,
): Promise<CompiledCore> {
  const core = compile(files.wasm, shared); // the largest is requested first
  // Errors in these are reported to the session that needs them.
  const microkernels = files.likely && compileMicrokernels(files, shared, files.likely).catch(() => undefined);
  return { shared, core: await core, microkernels: await microkernels };
}
