// The core for Node: loads it, and makes the calls that all tests need. Little-endian, like wasm.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const KIND = { tensor: 0, sequence: 1, optional: 2 };
const DTYPE = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  uint32: 12,
  uint64: 13,
};
const LOCATION = { none: 0, cpu: 1, device: 2 };

/** PY_ORT_CORE, or the newer of the two builds. */
function corePath() {
  if (process.env.PY_ORT_CORE) return path.resolve(process.env.PY_ORT_CORE);
  const builds = ['core-fast', 'core']
    .map((name) => path.join(__dirname, '../../build', name, 'core.mjs'))
    .filter(fs.existsSync);
  if (builds.length === 0) throw new Error('the core is not built: run PY_ORT_FAST=1 emsdk_scripts/build');
  return builds.sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs)[0];
}

const compiled = new Map();
function moduleOf(file) {
  if (!compiled.has(file)) compiled.set(file, new WebAssembly.Module(fs.readFileSync(file)));
  return compiled.get(file);
}

/** Imports of core.wasm for the functions of rare_kernels.wasm. */
const PLACEHOLDERS = new Proxy(
  {},
  {
    get: () => () => {
      throw new Error('rare_kernels.wasm is not loaded');
    },
  },
);

/**
 * The module of a core.mjs. It is built for pages and would fetch core.wasm: here it is made of the bytes. Quick builds
 * have no rare kernels apart, and never ask for them.
 */
async function loadModule(file, options = {}) {
  const { default: createCore } = await import(pathToFileURL(path.resolve(file)).href);
  let primary;
  const instantiateWasm = (imports, done) => {
    const core = new WebAssembly.Instance(moduleOf(file.replace(/mjs$/, 'wasm')), {
      ...imports,
      placeholder: PLACEHOLDERS,
    });
    primary = core.exports;
    setImmediate(done, core);
    return {};
  };
  const module = await createCore({ instantiateWasm, ...options });
  const rare = path.join(path.dirname(file), 'rare_kernels.wasm');
  module.addRareKernels = () => new WebAssembly.Instance(moduleOf(rare), { primary });
  return module;
}

/** Adds the micro-kernels next to core.mjs. Older releases of Node have relaxed SIMD behind a flag. */
function addMicrokernels(module, relaxed) {
  if (relaxed) require('node:v8').setFlagsFromString('--experimental-wasm-relaxed-simd');
  const name = relaxed ? 'relaxed_simd.wasm' : 'simd128.wasm';
  const bytes = fs.readFileSync(path.join(path.dirname(corePath()), name));
  if (!module.addMicrokernels(new WebAssembly.Module(bytes), relaxed))
    throw new Error(`${name} is empty: it was built without clang 19`);
}

/** The error of ort_last_error. */
class CoreError extends Error {
  constructor(fields) {
    super(fields.message);
    this.fields = fields;
  }
}

class Core {
  /** With PY_ORT_SIMD=relaxed, the micro-kernels are those of relaxed SIMD. megabytes: the limit of the heap. */
  static async load(megabytes = 4096) {
    const small = megabytes < 4096 && { wasmMemory: new WebAssembly.Memory({ initial: 256, maximum: megabytes * 16 }) };
    const module = await loadModule(corePath(), small || {});
    const relaxed = process.env.PY_ORT_SIMD === 'relaxed';
    addMicrokernels(module, relaxed);
    return new Core(module, relaxed);
  }
  constructor(module, relaxed) {
    this.module = module;
    this.relaxed = relaxed;
    this.hasRareKernels = false;
  }

  /** Returns `result`, or throws the last error if it is 0. */
  check(result) {
    if (result) return result;
    const text = this.module.UTF8ToString(this.module._ort_last_error());
    throw new CoreError(text ? JSON.parse(text) : { code: 1, message: 'failed without an error' });
  }
  /** Copies bytes into memory that the core then owns. */
  copyIn(bytes) {
    const address = this.module._ort_malloc(bytes.length) >>> 0;
    if (!address) throw new CoreError({ code: 5, message: `no memory for ${bytes.length} bytes` });
    this.module.HEAPU8.set(bytes, address);
    return address;
  }
  bytes(address, size) {
    return this.module.HEAPU8.slice(address, address + size);
  }
  word(address) {
    return this.module.HEAPU32[address >>> 2];
  }
  words(list) {
    return this.copyIn(new Uint8Array(Uint32Array.from(list, (x) => x >>> 0).buffer));
  }
  /** Calls f with the address of these words, and frees them afterwards. */
  withWords(list, f) {
    const address = this.words(list);
    try {
      return f(address);
    } finally {
      this.module._ort_free(address);
    }
  }

  /** weights: [{index, offset, size}] of the blob, for the heap; onDevice: [[index, id]]. */
  session(plan, weights = [], blob = new Uint8Array(), onDevice = []) {
    const session = this.check(this.module._ort_session_create(this.copyIn(plan), plan.length));
    this.useMicrokernels(session);
    if (!this.hasRareKernels && this.module._ort_session_has_rare_kernels(session)) {
      this.module.addRareKernels();
      this.hasRareKernels = true;
    }
    for (const { index, offset, size } of weights) {
      const address = this.check(this.module._ort_session_weight(session, index)) >>> 0;
      this.module.HEAPU8.set(blob.subarray(offset, offset + size), address);
    }
    for (const [index, id] of onDevice) this.check(this.module._ort_session_weight_on_device(session, index, id));
    this.check(this.module._ort_session_prepare(session));
    return session;
  }
  /** As in pages: only sessions whose nodes run micro-kernels have any. */
  useMicrokernels(session) {
    const none = !this.module._ort_session_runs_microkernels(session);
    this.module._ort_microkernels_use(none ? -1 : Number(this.relaxed), 1);
  }
  begin(session) {
    const run = this.check(this.module._ort_run_begin(session));
    this.useMicrokernels(session);
    return run;
  }
  feed(run, input, dtype, dims, bytes) {
    const data = this.copyIn(bytes);
    return this.withWords(dims, (at) =>
      this.check(this.module._ort_run_feed(run, input, dtype, dims.length, at, data, bytes.length)),
    );
  }
  feedDevice(run, input, dtype, dims, id, provider = 1) {
    return this.withWords(dims, (at) =>
      this.check(this.module._ort_run_feed_device(run, input, provider, dtype, dims.length, at, id)),
    );
  }
  feedContainer(run, input, kind, dtype) {
    return this.check(this.module._ort_run_feed_container(run, input, kind, dtype));
  }
  /** Allocates all memory except `left` bytes, until the returned function is called; `taken`: the allocated bytes. */
  fill(left) {
    const blocks = [];
    let taken = 0;
    const room = left && this.module._ort_malloc(left);
    for (let size = 1 << 26; size >= 16; size >>= 1)
      for (let block; (block = this.module._malloc(size)); taken += size) blocks.push(block);
    if (room) this.module._ort_free(room);
    return { taken, release: () => blocks.forEach((block) => this.module._free(block)) };
  }
  /** Resolves when the run has ended, suspended or not. */
  async execute(run) {
    let done = this.module._ort_run_execute(run);
    if (this.module.Asyncify.currData) done = await this.module.Asyncify.whenDone();
    this.check(done);
  }
  /**
   * {kind, dtype, location, data, dims, bytes} of a tensor (bytes: for one on the CPU), {kind, items} of the others.
   */
  output(run, index) {
    const cursor = { at: this.check(this.module._ort_run_output(run, index)) >>> 0 };
    return this.readValue(cursor);
  }
  readValue(cursor) {
    const next = () => this.word((cursor.at += 4) - 4);
    const kind = next();
    if (kind !== KIND.tensor) {
      const items = [];
      for (let count = next(); count > 0; count--) items.push(this.readValue(cursor));
      return { kind, items };
    }
    const [dtype, location, data, size, rank] = [next(), next(), next(), next(), next()];
    const dims = Array.from({ length: rank }, next);
    return { kind, dtype, location, data, dims, bytes: location === LOCATION.cpu ? this.bytes(data, size) : undefined };
  }
}

module.exports = { Core, loadModule, CoreError, KIND, DTYPE, LOCATION };
