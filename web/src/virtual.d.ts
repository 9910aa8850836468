// Made by build.mjs.
/** From the files of src/providers/webgpu/kernels. */
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
/** What providers do of decoders' loops, by their names. */
declare module 'virtual:generate' {
  export const parts: { readonly [provider: string]: import('./generate/device_part').DevicePartOf | undefined };
}
/** The core's glue in the script itself: in workers' scripts of pages; elsewhere core.mjs is a file of its own. */
declare module 'virtual:core' {
  export const createCore: import('./core/module').CreateCore | undefined;
}
