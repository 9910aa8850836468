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
  /** True where the list has the kernels of some models only: see linked_kernels.ts. */
  export const isMinimal: boolean;
}
/** What differs between builds of the API. */
declare module 'virtual:build' {
  /** Its execution providers, best first. */
  export const providers: readonly string[];
  /** Those that other builds have. */
  export const elsewhere: readonly string[];
  /** What is known of those with devices before their code is loaded. */
  export const sides: { readonly [provider: string]: import('./device/module').PageSide | undefined };
  /** A worker's script: its name, and its URL beside this module. */
  interface Script {
    readonly name: string;
    url(): URL;
  }
  /** Files of providers that are loaded when a session names the provider. */
  export const late: { readonly [provider: string]: Script };
  export const worker: Script;
  /** That of sessions without devices. */
  export const plain: Script;
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
/** The loops of decoders in the script itself, for places without `import()`; elsewhere generate.mjs has them. */
declare module 'virtual:loops' {
  export const loops: typeof import('./generate/generator') | undefined;
}
/** The core's glue in the script itself, for workers and places without `import()`; elsewhere core.mjs is a file. */
declare module 'virtual:core' {
  export const createCore: import('./core/module').CreateCore | undefined;
}
/** What the files of providers that are loaded late import from the rest of the build. */
declare module 'virtual:outside';
