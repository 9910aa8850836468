// Execution providers by name. What runs in the core is one, too: all others have devices, and folders in providers/.

/** The core's own, which runs what no other does. */
export const CORE_PROVIDER = 'wasm';
