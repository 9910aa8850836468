// Kernels of the mirror: float32 in, float32 out.
import type { DTypeName } from '../../../web/src/contract/kernel';

type Dims = readonly number[];

export interface MirrorKernel {
  readonly op: string;
  readonly types: readonly (readonly DTypeName[])[];
  shape(inputs: readonly Dims[]): Dims;
  run(inputs: readonly Float32Array[], output: Float32Array, dims: readonly Dims[]): void;
}

const FLOATS = [['float32']] as const;

/** Both of one shape, or the second a row. */
const add: MirrorKernel = {
  op: 'Add',
  types: FLOATS,
  shape: ([a]) => a,
  run([a, b], y) {
    for (let i = 0; i < y.length; i++) y[i] = a[i] + b[i % b.length];
  },
};

const relu: MirrorKernel = {
  op: 'Relu',
  types: FLOATS,
  shape: ([x]) => x,
  run([x], y) {
    for (let i = 0; i < y.length; i++) y[i] = Math.max(x[i], 0);
  },
};

const matmul: MirrorKernel = {
  op: 'MatMul',
  types: FLOATS,
  shape: ([a, b]) => [a[0], b[1]],
  run([a, b], y, [[rows, depth], [, columns]]) {
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) {
        let sum = 0;
        for (let k = 0; k < depth; k++) sum += a[i * depth + k] * b[k * columns + j];
        y[i * columns + j] = sum;
      }
  },
};

export const kernels: readonly MirrorKernel[] = [add, relu, matmul];
