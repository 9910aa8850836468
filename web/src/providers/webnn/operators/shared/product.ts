import type { MlOperand } from '../../ml';
import type { Formula } from '../../formula';

/** A vector is a row on the left and a column on the right; the result lacks its axis. */
export function product(f: Formula, a: MlOperand, b: MlOperand): MlOperand {
  const left = a.shape.length === 1 ? f.reshape(a, [1, ...a.shape]) : a;
  const right = b.shape.length === 1 ? f.reshape(b, [...b.shape, 1]) : b;
  const y = f.plain('matmul', left, right);
  const batch = y.shape.slice(0, -2);
  return f.reshape(y, [...batch, ...(a === left ? [y.shape.at(-2)!] : []), ...(b === right ? [y.shape.at(-1)!] : [])]);
}
