// The places of the runtime's files: next to this module under their own names, or those of `env.wasm.wasmPaths`.
import { late, plain, thread, worker } from 'virtual:build';
import { filesIn } from '../core/files';
import { host } from '../host';

export interface WasmFilePaths {
  /** core.mjs. Pages' workers have it in their script; they load it if its URL is set. */
  readonly mjs?: URL | string;
  /** core.wasm. */
  readonly wasm?: URL | string;
  /** session_worker.mjs, or the build's own script. */
  readonly worker?: URL | string;
  /** microkernel_worker.js, or the build's own script. */
  readonly thread?: URL | string;
  /** generate.mjs, which the first `generate` loads. */
  readonly generate?: URL | string;
  /** provider_webgl.mjs. The first session that names webgl loads it, unless a provider before webgl has a device. */
  readonly webgl?: URL | string;
  /** provider_webnn.mjs, which sessions load in the same way. */
  readonly webnn?: URL | string;
  readonly relaxedSimd?: URL | string;
  readonly simd128?: URL | string;
  /** rare_kernels.wasm, which sessions load if nodes on the CPU need it. */
  readonly rareKernels?: URL | string;
}

/** URLs. */
export interface RuntimeFiles {
  readonly core: string;
  /** True if the user set it: then workers load it, too, instead of the one in their script. */
  readonly coreIsNamed: boolean;
  readonly wasm: string;
  readonly relaxedSimd: string;
  readonly simd128: string;
  readonly rareKernels: string;
  readonly worker: string;
  /** The worker of sessions without devices: a smaller script. */
  readonly plain: string;
  readonly thread: string;
  readonly generate: string;
  /** Files of providers that are loaded late, by the providers' names. */
  readonly late: { readonly [provider: string]: string };
}

// Written out, file by file: by these expressions bundlers find files, and copy them under other names. (Those of the
// scripts are in virtual:build, because they differ between builds.) Some bundlers turn them into paths.
const own = (): RuntimeFiles => ({
  core: at(new URL('./core.mjs', import.meta.url)),
  coreIsNamed: false,
  wasm: at(new URL('./core.wasm', import.meta.url)),
  relaxedSimd: at(new URL('./relaxed_simd.wasm', import.meta.url)),
  simd128: at(new URL('./simd128.wasm', import.meta.url)),
  rareKernels: at(new URL('./rare_kernels.wasm', import.meta.url)),
  generate: at(new URL('./generate.mjs', import.meta.url)),
  worker: at(worker.url()),
  plain: at(plain.url()),
  thread: at(thread.url()),
  late: lateBy(({ url }) => at(url())),
});

const at = (url: URL | string) => host.resolve(String(url));

const lateBy = (urlOf: (script: (typeof late)[string], provider: string) => string) =>
  Object.fromEntries(Object.entries(late).map(([provider, script]) => [provider, urlOf(script, provider)]));

/** The default of `env.wasm.wasmPaths`. */
export const OWN_FOLDER = import.meta.url.replace(/[^/]*$/, '');

export function runtimeFiles(paths: string | WasmFilePaths = OWN_FOLDER): RuntimeFiles {
  if (paths === OWN_FOLDER) return own();
  if (typeof paths === 'object') {
    const { mjs, ...others } = paths;
    const named = Object.entries({ core: mjs, ...others }).flatMap(([name, url]) => (url ? [[name, at(url)]] : []));
    const script = others.worker && { plain: at(others.worker) };
    const given = { ...own(), ...Object.fromEntries(named), ...script };
    const byProvider = lateBy((_, provider) => given[provider] ?? given.late[provider]);
    return { ...given, late: byProvider, coreIsNamed: Boolean(mjs) };
  }
  const folder = at(paths);
  const { core, wasm, relaxedSimd, simd128, rareKernels, generate } = filesIn(folder);
  return {
    core: String(core),
    coreIsNamed: false,
    wasm: String(wasm),
    relaxedSimd: relaxedSimd.href,
    simd128: simd128.href,
    rareKernels: rareKernels.href,
    generate: generate.href,
    worker: new URL(worker.name, folder).href,
    plain: new URL(plain.name, folder).href,
    thread: new URL(thread.name, folder).href,
    late: lateBy(({ name }) => new URL(name, folder).href),
  };
}
