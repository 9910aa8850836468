// A backend for onnxruntime's contract, without any knowledge of this core: eight arguments of jsepInit, kernels with
// plain attributes, and the words of a run. Its GPU is arrays, and it records its calls.
'use strict';

/** The words of one run. */
class Context {
  constructor(module, backend, offset) {
    this.module = module;
    this.backend = backend;
    let at = offset >>> 2;
    const next = () => module.HEAPU32[at++];
    this.opKernelContext = next();
    this.inputs = Array.from({ length: next() }, () => {
      const [dataType, data] = [next(), next()];
      return { dataType, data, dims: Array.from({ length: next() }, next) };
    });
  }
  floats(i) {
    const { data, dims } = this.inputs[i];
    return new Float32Array(this.backend.get(data).buffer, 0, sizeOf(dims));
  }
  /** An input that the core kept in its heap. */
  int64(i) {
    const { data, dims } = this.inputs[i];
    return Array.from(new BigInt64Array(this.module.HEAPU8.slice(data, data + 8 * sizeOf(dims)).buffer), Number);
  }
  output(index, dims, values) {
    const { module } = this;
    const stack = module.stackSave();
    try {
      const shape = module.stackAlloc(4 * (1 + dims.length));
      module.HEAPU32.set([dims.length, ...dims], shape >>> 2);
      const id = module._JsepOutput(this.opKernelContext, index, shape);
      if (id === 0) return 1;
      new Float32Array(this.backend.get(id).buffer).set(values);
      return 0;
    } finally {
      module.stackRestore(stack);
    }
  }
}

const sizeOf = (dims) => dims.reduce((a, b) => a * b, 1);

/** Kernels by operator. They return the contract's 0, or another number. */
const KERNELS = {
  Elu: (run, { alpha }) =>
    run.output(
      0,
      run.inputs[0].dims,
      run.floats(0).map((x) => (x < 0 ? alpha * Math.expm1(x) : x)),
    ),
  Add: (run) => {
    const [a, b] = [run.floats(0), run.floats(1)];
    return run.output(
      0,
      run.inputs[0].dims,
      a.map((x, i) => x + b[i % b.length]),
    );
  },
  Transpose: (run, { perm }) => {
    const [rows, columns] = run.inputs[0].dims;
    const x = run.floats(0);
    return run.output(
      0,
      perm.map((axis) => run.inputs[0].dims[axis]),
      x.map((_, i) => x[(i % rows) * columns + Math.floor(i / rows)]),
    );
  },
  Reshape: (run) => run.output(0, run.int64(1), run.floats(0)),
  Says1: () => 1,
  Throws: () => {
    throw new Error('this kernel cannot');
  },
  Early: (run) => run.output(7, [1], [0]),
};

class ContractBackend {
  constructor(module) {
    this.module = module;
    this.buffers = new Map();
    this.kernels = new Map();
    this.calls = [];
    this.runs = [];
    this.last = 0;
    module.jsepInit(
      this,
      (size) => this.add(new Uint8Array(size), `alloc ${size}`),
      (id) => this.calls.push(`free ${id}`) && this.buffers.delete(id),
      (source, target, size, isSourceGpu = false) => {
        this.calls.push(`copy ${isSourceGpu ? 'gpu' : 'cpu'} ${size}`);
        const from = isSourceGpu ? this.get(source).slice(0, size) : module.HEAPU8.slice(source, source + size);
        this.get(target).set(from);
      },
      async (id, target, size) => {
        this.calls.push(`copyAsync ${size}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
        module.HEAPU8.set(this.get(id).subarray(0, size), target);
      },
      (name, kernel, attributes) => {
        if (!KERNELS[name]) throw new Error(`kernel not found: ${name}`);
        this.calls.push(`createKernel ${name}`);
        this.kernels.set(kernel, { name, attributes });
      },
      (kernel) => this.calls.push('releaseKernel') && this.kernels.delete(kernel),
      (kernel, offset) => {
        const { name, attributes } = this.kernels.get(kernel);
        const run = new Context(module, this, offset);
        this.calls.push(`run ${name}`);
        this.runs.push(run);
        return KERNELS[name](run, attributes);
      },
    );
  }
  add(buffer, call) {
    this.calls.push(call);
    this.buffers.set(++this.last, buffer);
    return this.last;
  }
  get(id) {
    if (!this.buffers.has(id)) throw new Error(`no buffer ${id}`);
    return this.buffers.get(id);
  }
  // --- calls of a page around runs
  registerBuffer(_session, _index, buffer) {
    return this.add(buffer, 'registerBuffer');
  }
  getBuffer(id) {
    return this.get(id);
  }
  onRunStart(session) {
    this.calls.push(`onRunStart ${session}`);
  }
}

module.exports = { ContractBackend };
