// Execution providers by name. The core's is one, too: all others have devices, and folders in providers/.

/** The core's own provider, which runs the nodes that no other one runs. */
export const CORE_PROVIDER = 'wasm';
