// Made by build.mjs.
/** From the files of src/providers/webnn/operators; only that folder knows their types. */
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
  /** The file of each kernel, in that folder. */
  export const sources: readonly string[];
  /** True where the list has the kernels of some models only: see linked_kernels.ts. */
  export const isMinimal: boolean;
}
/** The differences between builds of the API. */
declare module 'virtual:build' {
  /** Its execution providers, best first. */
  export const providers: readonly string[];
  /** Providers of other builds. */
  export const elsewhere: readonly string[];
  /** The part of providers with devices that is needed before their code is loaded. */
  export const sides: { readonly [provider: string]: import('./device/module').PageSide | undefined };
  /** A worker's script: its name, and its URL next to this module. */
  interface Script {
    readonly name: string;
    url(): URL;
  }
  /** Files of providers that are loaded when a session names the provider. */
  export const late: { readonly [provider: string]: Script };
  export const worker: Script;
  /** The script for sessions without devices. */
  export const plain: Script;
  export const thread: Script;
}
/** The build's providers with devices, by their names, best first. */
declare module 'virtual:providers' {
  export const providers: { readonly [provider: string]: import('./device/module').ProviderModule | undefined };
}
/** Providers' parts in decoders' loops, by their names. */
declare module 'virtual:parts' {
  export const parts: { readonly [provider: string]: import('./generate/device_part').DevicePartOf | undefined };
}
/**
 * The loops of decoders in the script itself, for environments without `import()`; otherwise they are in generate.mjs.
 */
declare module 'virtual:loops' {
  export const loops: typeof import('./generate/generator') | undefined;
}
/**
 * The core's glue in the script itself, for workers and environments without `import()`; otherwise it is in core.mjs.
 */
declare module 'virtual:core' {
  export const createCore: import('./core/module').CreateCore | undefined;
}
/** The parts of the build that the files of late providers import. */
declare module 'virtual:outside';
