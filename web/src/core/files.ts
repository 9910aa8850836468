// Where the core's files are.
import type { CreateCore } from './module';

/**
 * Which instructions the inner loops of nodes on the CPU use: "fixed" are those that every browser has, and round each
 * step; "relaxed" ones may fuse them.
 */
export type Simd = 'relaxed' | 'fixed';

/** relaxed_simd.wasm or simd128.wasm. */
export interface CompiledMicrokernels {
  readonly simd: Simd;
  readonly module: WebAssembly.Module;
  /** Why it is plain SIMD's, where relaxed SIMD was wanted. */
  readonly withoutRelaxed?: string;
}

export interface CompiledCore {
  /** Whether it is for shared memory: that is in a module's bytes. */
  readonly shared: boolean;
  readonly core: WebAssembly.Module;
  readonly microkernels?: CompiledMicrokernels;
}

export interface CoreFiles {
  /** core.mjs, or what it exports. */
  readonly core: URL | CreateCore;
  /** Or its bytes. */
  readonly wasm: URL | Uint8Array;
  readonly relaxedSimd: URL;
  readonly simd128: URL;
  /** rare_kernels.wasm: see rare_kernels.ts. */
  readonly rareKernels: URL;
  /** The micro-kernels that the first session will most likely want: they are fetched beside the core. */
  readonly likely?: Simd | 'auto';
  /** false: sessions have one thread, and the core has memory of its own. */
  readonly threads?: boolean;
  /** What somebody has made of these already; undefined: nothing came of it. */
  readonly compiled?: Promise<CompiledCore | undefined>;
  /** What a thread of the CPU provider runs. */
  readonly thread: URL;
  /** generate.mjs: see generate/load.ts. */
  readonly generate: URL;
  /** Files of providers that are loaded late, by the providers' names. */
  readonly late?: { readonly [provider: string]: URL };
}

/** Those of a folder, by their own names. `base`: the folder, with a slash at its end, or a file in it. */
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
