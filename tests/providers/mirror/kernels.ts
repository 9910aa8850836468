// Kernels of the mirror: float32 in, float32 out.
import type { DTypeName, Requirement } from '../../../web/src/contract/kernel';

type Dims = readonly number[];

export interface MirrorKernel {
  readonly op: string;
  readonly types: readonly (readonly DTypeName[])[];
  readonly requires?: readonly Requirement[];
  shape(inputs: readonly Dims[]): Dims;
  run(inputs: readonly Float32Array[], output: Float32Array, dims: readonly Dims[]): void;
}

const FLOATS = [['float32']] as const;
const matrix = (input: number) => ({ rank: { input, min: 2, max: 2 }, otherwise: 'products of more than matrices' });

/** The size of axis `i` from the end, and the distance between its elements: 0 if the tensor repeats one. */
const axis = (dims: Dims, i: number) => dims[dims.length - 1 - i] ?? 1;
const step = (dims: Dims, i: number) =>
  axis(dims, i) === 1 ? 0 : dims.slice(dims.length - i).reduce((product, size) => product * size, 1);

function together([a, b]: readonly Dims[]): number[] {
  const sizes = Array.from({ length: Math.max(a.length, b.length) }, (_, i) => [axis(a, i), axis(b, i)]);
  return sizes.map(([m, n]) => (m === 1 ? n : m)).reverse();
}

const add: MirrorKernel = {
  op: 'Add',
  types: FLOATS,
  shape: together,
  run([a, b], y, [aDims, bDims]) {
    const sizes = together([aDims, bDims]).reverse();
    for (let at = 0; at < y.length; at++) {
      let [rest, i, j] = [at, 0, 0];
      sizes.forEach((size, k) => {
        i += (rest % size) * step(aDims, k);
        j += (rest % size) * step(bDims, k);
        rest = Math.floor(rest / size);
      });
      y[at] = a[i] + b[j];
    }
  },
};

const relu: MirrorKernel = {
  op: 'Relu',
  types: FLOATS,
  shape: ([x]) => x,
  run: ([x], y) => x.forEach((value, i) => (y[i] = Math.max(value, 0))),
};

const matmul: MirrorKernel = {
  op: 'MatMul',
  types: FLOATS,
  requires: [matrix(0), matrix(1)],
  shape: ([a, b]) => [a[0], b[1]],
  run([a, b], y, [[, depth], [, columns]]) {
    for (let at = 0; at < y.length; at++) {
      const [i, j] = [Math.floor(at / columns) * depth, at % columns];
      let sum = 0;
      for (let k = 0; k < depth; k++) sum += a[i + k] * b[k * columns + j];
      y[at] = sum;
    }
  },
};

export const kernels: readonly MirrorKernel[] = [add, relu, matmul];
