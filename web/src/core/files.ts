// Where the core's files are.

export interface CoreFiles {
  readonly core: URL;
  /** Or its bytes. */
  readonly wasm: URL | Uint8Array;
  readonly relaxedSimd: URL;
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
