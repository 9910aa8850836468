// Operators on integers, as operators on the floats of these integers. If a browser finds dequantizeLinear with
// constant scales before an operator, and quantizeLinear after it, it computes with the integers.
import { sizeOf } from '../../../../contract/shape';
import type { Formula, Steps } from '../../formula';
import type { MlOperand } from '../../ml';

/** Zero points may be omitted. */
export const stepsOf = (f: Formula, x: MlOperand, scale: MlOperand, zero?: MlOperand): Steps => [
  scale,
  zero ?? f.number(x, 0),
];

const floatsOf = (bytes: Uint8Array): readonly number[] => [...new Float32Array(bytes.slice().buffer)];

/** The product of two scales, one of which may be per channel; a constant, if both are. */
function scaleProduct(f: Formula, a: MlOperand, b: MlOperand): MlOperand {
  const [left, right] = [f.bytesOf(a), f.bytesOf(b)];
  const shape = [sizeOf(b.shape)];
  if (!left || !right) return f.of('mul', f.shaped(a, [1]), f.shaped(b, shape));
  const [one] = floatsOf(left);
  return f.constant(
    floatsOf(right).map((other) => one * other),
    shape,
    'float32',
  );
}

export const zerosLike = (f: Formula, { shape }: MlOperand, dataType: MlOperand['dataType']): MlOperand =>
  f.constant(new Array<number>(sizeOf(shape)).fill(0), shape, dataType);

/**
 * Weights with one scale for all or one per index of an axis. If the browser must not use them as integers, because it
 * ignores their zero points, their floats are computed.
 */
export function weightFloats(f: Formula, w: MlOperand, scale: MlOperand, zero: MlOperand, axis: number): MlOperand {
  const [steps, zeros] = [scale, zero].map((one) =>
    f.shaped(
      one,
      w.shape.map((_, i) => (i === axis ? sizeOf(one.shape) : 1)),
    ),
  );
  if (w.dataType === 'int8' && f.bytesOf(w) && f.bytesOf(scale) && f.bytesOf(zero)?.every((byte) => byte === 0))
    return f.plain('dequantizeLinear', w, steps, zerosLike(f, steps, 'int8'));
  return f.of('mul', f.of('sub', f.cast(w, 'float32'), f.cast(zeros, 'float32')), steps);
}

/** int32 with the product of the scales; the browser requires a bias, at least zeros. */
export function biasFloats(
  f: Formula,
  bias: MlOperand | undefined,
  xScale: MlOperand,
  wScale: MlOperand,
  channels: number,
): MlOperand {
  const scale = scaleProduct(f, xScale, wScale);
  const integers = bias ?? f.constant(new Array<number>(channels).fill(0), [channels], 'int32');
  if (f.bytesOf(scale)) return f.plain('dequantizeLinear', integers, scale, zerosLike(f, scale, 'int32'));
  return f.of('mul', f.cast(integers, 'float32'), scale);
}

const sameBytes = (f: Formula, a: MlOperand, b: MlOperand) => {
  const [left, right] = [f.bytesOf(a), f.bytesOf(b)];
  return left !== undefined && `${left}` === `${right}`;
};

export const sameSteps = (f: Formula, a: Steps, b: Steps): boolean => a.every((one, i) => sameBytes(f, one, b[i]));

/** With another scale: the product with one is computed with integers. */
export function inSteps(f: Formula, x: MlOperand, from: Steps, to: Steps): MlOperand {
  if (sameSteps(f, from, to)) return x;
  const one = f.dequantized(f.constant([1], [], x.dataType), [f.constant([1], [], 'float32'), f.number(x, 0)]);
  return f.quantized(f.plain('mul', f.dequantized(x, from), one), to);
}

/** A matrix times weights [K, N], or `packed` [N, K], with a bias in the scale of the product. */
export function productFloats(
  f: Formula,
  [a, aScale, aZero]: readonly MlOperand[],
  [b, bScale, bZero]: readonly MlOperand[],
  packed: boolean,
  bias?: MlOperand,
  alpha = 1,
): MlOperand {
  const axis = packed ? 0 : 1;
  const columns = b.shape[axis];
  const row = bias?.shape.at(-1) === columns && sizeOf(bias.shape) === columns;
  const c = bias && (row ? biasFloats(f, f.shaped(bias, [columns]), aScale, bScale, columns) : undefined);
  const left = f.dequantized(a, stepsOf(f, a, aScale, aZero));
  const right = weightFloats(f, b, bScale, bZero ?? f.number(b, 0), axis);
  const y = f.plain('gemm', left, right, { alpha, beta: alpha, bTranspose: packed, ...(c && { c }) });
  if (!bias || c) return y;
  const added = f.of('mul', f.cast(bias, 'float32'), scaleProduct(f, aScale, bScale));
  return f.of('add', y, alpha === 1 ? added : f.of('mul', added, alpha));
}
