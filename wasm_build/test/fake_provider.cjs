// A JavaScript execution provider for the tests: "GPU" buffers are arrays, and a kernel computes at once.
'use strict';
const { DTYPE, LOCATION } = require('./core.cjs');

/** The array type of elements that are not i32 in a buffer: float16 as its bits. */
const ARRAYS = {
  [DTYPE.float32]: Float32Array,
  [DTYPE.float16]: Uint16Array,
  [DTYPE.int16]: Int16Array,
  [DTYPE.uint16]: Uint16Array,
  [DTYPE.int8]: Int8Array,
  [DTYPE.uint8]: Uint8Array,
};

/** Kernels by operator: they receive the call and may throw. */
const KERNELS = {
  Neg: (call) => call.map(0, call.inputs[0].dims, (x) => -x),
  Add: (call) => call.map(0, call.inputs[0].dims, (a, b) => a + b),
  Less: (call) => call.map(0, call.inputs[0].dims, (a, b) => (a < b ? 1 : 0), 9),
  Reshape: (call) => call.view(0, 0, call.host(1)),
  Shape: (call) => call.fill(0, [call.inputs[0].dims.length], call.inputs[0].dims, 7),
  Two: (call) => [0, 1].forEach((i) => call.map(i, call.inputs[0].dims, (x) => x + i)),
  Nothing: () => {},
  Fails: (call) => call.fail(6, 'the fake kernel fails'),
  Throws: () => {
    throw new Error('the fake kernel throws');
  },
};

class Call {
  constructor(provider, context) {
    this.provider = provider;
    this.context = context;
    let at = context;
    const next = () => provider.core.word((at += 4) - 4);
    const [inputs, outputs] = [next(), next()];
    this.inputs = Array.from({ length: inputs }, () => {
      const [dtype, location, data, bytes, rank] = [next(), next(), next(), next(), next()];
      return { dtype, location, data, bytes, dims: Array.from({ length: rank }, next) };
    });
    this.wanted = Array.from({ length: outputs }, next);
  }
  elements(buffer, dtype) {
    return new (ARRAYS[dtype] ?? Int32Array)(buffer.buffer);
  }
  /** Elements of a GPU input. */
  read(i) {
    const { data, dtype } = this.inputs[i];
    return this.elements(this.provider.buffer(data), dtype);
  }
  /** int64 elements of a host input. */
  host(i) {
    const { location, data, bytes } = this.inputs[i];
    if (location !== LOCATION.cpu) throw new Error(`host input ${i} is at ${location}`);
    return Array.from(new BigInt64Array(this.provider.core.bytes(data, bytes).buffer), Number);
  }
  fill(i, dims, values, dtype) {
    const { core } = this.provider;
    const id = core.withWords(dims, (at) => core.module._ort_jsep_output(this.context, i, dtype, dims.length, at));
    if (!id) throw new Error(`output ${i} was refused`);
    this.elements(this.provider.buffer(id), dtype).set(values);
  }
  map(i, dims, f, dtype = this.inputs[0].dtype) {
    const inputs = this.inputs.map((_, k) => this.read(k));
    const count = dims.reduce((a, b) => a * b, 1);
    this.fill(
      i,
      dims,
      Array.from({ length: count }, (_, k) => f(...inputs.map((x) => x[k]))),
      dtype,
    );
  }
  view(i, input, dims) {
    const { core } = this.provider;
    if (!core.withWords(dims, (at) => core.module._ort_jsep_output_view(this.context, i, input, dims.length, at)))
      throw new Error('the view was refused');
  }
  fail(code, message) {
    const { module } = this.provider.core;
    const text = module.stringToNewUTF8(message);
    module._ort_jsep_error(code, text);
    module._free(text);
    return code;
  }
}

class FakeProvider {
  constructor(core) {
    this.core = core;
    this.buffers = new Map();
    this.owners = new Map(); // the device of each buffer ever made by alloc
    this.kernels = new Map();
    this.log = [];
    this.calls = []; // one Call per jsepRun
    this.async = true; // true if copyAsync returns a promise
    this.beforeCopy = undefined; // called, and awaited, before a copyAsync copies its bytes
    this.limit = Infinity; // the last buffer there is memory for
    this.last = 0;
    core.module.jsepInit(this, {
      alloc: (provider, size) => this.of(provider).alloc(size),
      free: (provider, id) => this.of(provider, id).free(id),
      copy: (provider, source, target, size, upload, _dtype, blocks) =>
        upload
          ? this.of(provider, target).upload(source, target, size)
          : this.of(provider, source, target).copy(source, target, size, blocks),
      copyAsync: (provider, id, target, size) => this.of(provider, id).copyAsync(id, target, size),
      createKernel: (provider, opType, id, attributes, size, domain) =>
        this.of(provider).createKernel(opType, id, attributes, size, domain),
      releaseKernel: (_provider, id) =>
        this.log.push(`releaseKernel ${this.kernels.get(id)}`) && this.kernels.delete(id),
      run: (provider, id, context) => this.of(provider).run(id, context),
    });
  }
  /** Uses this device from now on. Throws if one of the buffers belongs to another one. */
  of(provider, ...ids) {
    const strange = ids.find((id) => (this.owners.get(id) ?? 1) !== provider);
    if (strange) throw new Error(`buffer ${strange} is not on device ${provider}`);
    this.device = provider;
    return this;
  }
  buffer(id) {
    if (!this.buffers.has(id)) throw new Error(`there is no GPU buffer ${id}`);
    return this.buffers.get(id);
  }
  /** The number of logged calls of a function. */
  count(name) {
    return this.log.filter((line) => line.split(' ')[0] === name).length;
  }
  alloc(size) {
    if (size % 16 || size === 0) throw new Error(`a buffer of ${size} bytes`);
    if (this.last >= this.limit) return 0;
    this.buffers.set(++this.last, new Uint8Array(size));
    this.owners.set(this.last, this.device);
    this.log.push(`alloc ${this.last} ${size}`);
    return this.last;
  }
  free(id) {
    this.buffer(id);
    this.buffers.delete(id);
    this.log.push(`free ${id}`);
  }
  upload(source, target, size) {
    this.buffer(target).set(this.core.bytes(source, size));
    this.log.push(`copy ${target} ${size}`);
  }
  copy(source, target, size, blocks) {
    const [count, from, fromStep, to, toStep] = [0, 1, 2, 3, 4].map((i) => this.core.word(blocks + 4 * i));
    for (let i = 0; i < count; i++) {
      const bytes = this.buffer(source).slice(from + i * fromStep, from + i * fromStep + size);
      if (bytes.length !== size) throw new Error(`a copy of ${size} bytes behind the end of buffer ${source}`);
      this.buffer(target).set(bytes, to + i * toStep);
    }
    this.log.push(`move ${source} ${target} ${count * size}`);
  }
  copyAsync(id, target, size) {
    this.log.push(`copyAsync ${id} ${size}`);
    const bytes = this.buffer(id).slice(0, size);
    const write = () => this.core.module.HEAPU8.set(bytes, target);
    if (!this.async) return write();
    return Promise.resolve(this.beforeCopy?.()).then(write);
  }
  createKernel(opType, id, _attributes, size, domain) {
    if (!KERNELS[opType]) throw new Error(`the fake provider has no kernel for ${opType}`);
    this.kernels.set(id, opType);
    this.log.push(`createKernel ${opType} ${domain} ${size}`);
  }
  run(id, context) {
    const call = new Call(this, context);
    this.calls.push({ op: this.kernels.get(id), inputs: call.inputs, wanted: call.wanted });
    this.log.push(`run ${this.kernels.get(id)}`);
    return KERNELS[this.kernels.get(id)](call);
  }
}

module.exports = { FakeProvider };
