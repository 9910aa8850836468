import { sizeOf } from '../../../../contract/shape';
import type { MlOperand } from '../../ml';
import type { Formula } from '../../formula';

/**
 * On rows of another rank: Chromium treats transposes before and after a softmax as inverses and removes both, as if
 * the softmax had no axis.
 */
export function softmax(f: Formula, x: MlOperand, axis: number): MlOperand {
  const { length } = x.shape;
  const permutation = x.shape.map((_, i) => (i === axis ? length - 1 : i === length - 1 ? axis : i));
  const last = axis === length - 1;
  const turned = last ? x : f.plain('transpose', x, { permutation });
  const rows = [sizeOf(x.shape) / x.shape[axis], x.shape[axis]];
  const shape = length === 2 ? [1, ...rows] : rows;
  const y = f.reshape(f.plain('softmax', f.reshape(turned, shape), shape.length - 1), turned.shape);
  return last ? y : f.plain('transpose', y, { permutation });
}

export function softmaxLog(f: Formula, x: MlOperand, axis: number): MlOperand {
  const options = { axes: [axis], keepDimensions: true };
  const less = f.of('sub', x, f.plain('reduceMax', x, options));
  return f.of('sub', less, f.of('log', f.plain('reduceSum', f.of('exp', less), options)));
}
