// Made by build.mjs.
/** From the files of src/kernels. */
declare module 'virtual:kernels' {
  export const kernels: readonly import('./contract/kernel').Kernel[];
}
/** What differs between builds of the API. */
declare module 'virtual:build' {
  /** Its execution providers, best first. */
  export const providers: readonly ('webgpu' | 'wasm')[];
  /** A worker's script: its name, and where it is beside this module. */
  interface Script {
    readonly name: string;
    readonly url: URL;
  }
  export const worker: Script;
  export const thread: Script;
}
