// Made by build.mjs from the files of src/kernels.
declare module 'virtual:kernels' {
  export const kernels: readonly import('./contract/kernel').Kernel[];
}
