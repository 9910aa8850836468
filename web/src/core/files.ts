// The places of the core's files.
import type { CreateCore } from './module';

/**
 * The instructions of the inner loops of nodes on the CPU: "fixed" ones are in every browser, and round each step;
 * "relaxed" ones may fuse steps.
 */
export type Simd = 'relaxed' | 'fixed';

/** relaxed_simd.wasm or simd128.wasm. */
export interface CompiledMicrokernels {
  readonly simd: Simd;
  readonly module: WebAssembly.Module;
  /** The reason for plain SIMD, if relaxed SIMD was requested. */
  readonly withoutRelaxed?: string;
}

export interface CompiledCore {
  /** True if it is for shared memory: a flag in the module's bytes. */
  readonly shared: boolean;
  readonly core: WebAssembly.Module;
  readonly microkernels?: CompiledMicrokernels;
}

export interface CoreFiles {
  /** core.mjs, or its export. */
  readonly core: URL | CreateCore;
  /** core.wasm, or its bytes. */
  readonly wasm: URL | Uint8Array;
  readonly relaxedSimd: URL;
  readonly simd128: URL;
  /** rare_kernels.wasm: see rare_kernels.ts. */
  readonly rareKernels: URL;
  /** The micro-kernels that the first session will most likely want: they are fetched beside the core. */
  readonly likely?: Simd | 'auto';
  /** false: sessions have one thread, and the core has memory of its own. */
  readonly threads?: boolean;
  /** The files already compiled; undefined: compilation failed. */
  readonly compiled?: Promise<CompiledCore | undefined>;
  /** The script of the CPU provider's threads. */
  readonly thread: URL;
  /** generate.mjs: see generate/load.ts. */
  readonly generate: URL;
  /** Files of providers that are loaded late, by the providers' names. */
  readonly late?: { readonly [provider: string]: URL };
}

/** The files of a folder, under their own names. `base`: the folder, with a slash at its end, or a file in it. */
export function filesIn(base: string | URL): CoreFiles {
  return {
    core: new URL('core.mjs', base),
    wasm: new URL('core.wasm', base),
    relaxedSimd: new URL('relaxed_simd.wasm', base),
    simd128: new URL('simd128.wasm', base),
    rareKernels: new URL('rare_kernels.wasm', base),
    thread: new URL('microkernel_worker.js', base),
    generate: new URL('generate.mjs', base),
  };
}
