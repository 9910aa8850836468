// Made by build.mjs.
/** From the files of src/providers/webnn/operators; what they are, only that folder knows. */
declare module 'virtual:kernels/webnn/operators' {
  export const kernels: readonly unknown[];
  export const sources: readonly string[];
}

/** From the files of src/providers/webgl/kernels. */
declare module 'virtual:kernels/webgl/kernels' {
  export const kernels: readonly import('./contract/kernel').Kernel[];
}

/** From the files of src/providers/webgpu/kernels. */
declare module 'virtual:kernels' {
  export const kernels: readonly import('./contract/kernel').Kernel[];
  /** The file of each, in that folder. */
  export const sources: readonly string[];
}
/** What differs between builds of the API. */
declare module 'virtual:build' {
  /** Its execution providers, best first. */
  export const providers: readonly string[];
  /** Those of them that sessions have which name none. */
  export const defaults: readonly string[];
  /** Those that other builds have. */
  export const elsewhere: readonly string[];
  /** What is known of those with devices before their code is loaded. */
  export const sides: { readonly [provider: string]: import('./device/module').PageSide | undefined };
  /** A worker's script: its name, and where it is beside this module. */
  interface Script {
    readonly name: string;
    readonly url: URL;
  }
  export const worker: Script;
  export const thread: Script;
}
/** Those with devices that the build has, by their names, best first. */
declare module 'virtual:providers' {
  export const providers: { readonly [provider: string]: import('./device/module').ProviderModule | undefined };
}
/** What providers do of decoders' loops, by their names. */
declare module 'virtual:parts' {
  export const parts: { readonly [provider: string]: import('./generate/device_part').DevicePartOf | undefined };
}
/** The core's glue in the script itself: in workers' scripts of pages; elsewhere core.mjs is a file of its own. */
declare module 'virtual:core' {
  export const createCore: import('./core/module').CreateCore | undefined;
}
