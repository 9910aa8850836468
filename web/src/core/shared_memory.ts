// Memory that several threads share, and the change of modules that use it: one core.wasm serves both kinds of memory,
// because a flag in the bytes of its import selects the kind. TextDecoder, websockets and fetch refuse views of shared
// memory: callers copy the bytes first (Core.bytes, OutputMemory), and core.mjs is built without TextDecoder.
import { host } from '../host';

/** A heap of 16 MiB that grows up to 4 GiB (wasm_build/CMakeLists.txt), or a text with the reason why there is none. */
export function sharedMemory(): WebAssembly.Memory | string {
  const why = host.withoutSharing();
  if (why !== undefined) return why;
  try {
    const memory = new WebAssembly.Memory({ initial: 256, maximum: 65536, shared: true });
    // Atomics must accept a view of it.
    Atomics.notify(new Int32Array(memory.buffer), 0);
    return memory.buffer instanceof SharedArrayBuffer ? memory : 'this browser has no shared memory for WebAssembly';
  } catch (error) {
    return `no shared memory: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Why there is none, if the first session asked for one thread. Browsers keep what they compile for plain memory. */
export const SINGLE_THREADED = 'the first session of this page was made for one thread (env.wasm.numThreads = 1)';

const IMPORTS = 2;
const [FUNCTION, TABLE, MEMORY, GLOBAL, TAG] = [0, 1, 2, 3, 4];
/** In the flags of a memory's limits. */
const SHARED = 2;

/**
 * Makes a module import its memory as shared, by a flag in its bytes. No other byte differs: plain loads and stores are
 * allowed there, and none of our modules is instantiated on a memory that another one initializes.
 */
export function onSharedMemory(module: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  let at = 8; // after the magic number and the version
  const number = (): number => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = module[at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  };
  const skip = (bytes: number) => {
    at += bytes;
  };
  while (at < module.length) {
    const [section, size] = [module[at++], number()];
    if (section !== IMPORTS) {
      skip(size);
      continue;
    }
    for (let count = number(); count > 0; count--) {
      skip(number()); // the module's name
      skip(number()); // the import's
      switch (module[at++]) {
        case FUNCTION:
          number();
          break;
        case GLOBAL:
          skip(2);
          break;
        case TAG:
          skip(1);
          number();
          break;
        case TABLE:
        case MEMORY: {
          if (module[at - 1] === TABLE) skip(1);
          else module[at] |= SHARED;
          const bounds = (module[at++] & 1) + 1;
          for (let i = 0; i < bounds; i++) number();
        }
      }
    }
    break;
  }
  return module;
}
