// The CPU kernels' inner loops for relaxed SIMD: relaxed_simd.wasm beside the core, where the browser knows its instructions.
import { messageOf } from '../errors';

/** Which instructions the inner loops use: "fixed" are those that every browser has, and round each step; "relaxed" ones may fuse them. */
export type Simd = 'relaxed' | 'fixed';

/** A module of one function, which is f32x4.relaxed_madd of its three parameters. */
const PROBE = Uint8Array.of(
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 8, 1, 0x60, 3, 0x7b, 0x7b, 0x7b, 1, 0x7b, 3, 2, 1, 0,
  10, 13, 1, 11, 0, 0x20, 0, 0x20, 1, 0x20, 2, 0xfd, 0x85, 2, 0x0b,
);

/** The module, or in words why there is none. */
export async function relaxedModule(url: URL): Promise<WebAssembly.Module | string> {
  if (!WebAssembly.validate(PROBE)) return 'this browser has no relaxed SIMD';
  try {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the server answered ${response.status} ${response.statusText}`);
    const module = await WebAssembly.compile(await response.arrayBuffer());
    return WebAssembly.Module.exports(module).length > 0 ? module : 'py_ort was built without it: clang and lld 19 or newer are needed for that';
  } catch (error) {
    return `${url.pathname} could not be loaded: ${messageOf(error)}`;
  }
}
