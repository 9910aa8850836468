// Where the core's files are.

export interface CompiledCore {
  /** Whether it is for shared memory: that is in a module's bytes. */
  readonly shared: boolean;
  readonly core: WebAssembly.Module;
  /** relaxed_simd.wasm, or in words why it is not used. */
  readonly relaxed: WebAssembly.Module | string;
}

export interface CoreFiles {
  readonly core: URL;
  /** Or its bytes. */
  readonly wasm: URL | Uint8Array;
  readonly relaxedSimd: URL;
  /** What somebody has made of both already; undefined: nothing came of it. */
  readonly compiled?: Promise<CompiledCore | undefined>;
  readonly simd128: URL;
  /** What a thread of the CPU provider runs. */
  readonly thread: URL;
}

/** Those of a folder, by their own names. `base`: the folder, with a slash at its end, or a file in it. */
export function filesIn(base: string | URL): CoreFiles {
  return {
    core: new URL('core.mjs', base),
    wasm: new URL('core.wasm', base),
    relaxedSimd: new URL('relaxed_simd.wasm', base),
    simd128: new URL('simd128.wasm', base),
    thread: new URL('microkernel_worker.js', base),
  };
}
