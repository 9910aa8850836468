// Rotary embedding: pairs of elements of a head are rotated by the angle of their position.
import type { MlOperand } from '../../ml';
import type { Formula } from '../../formula';
import { range } from './calls';

/** Rows of a cache [positions, angles] for each place: [batch, places, angles], or [places, angles] from one start. */
export function angles(f: Formula, cache: MlOperand, positions: MlOperand): MlOperand {
  return f.plain('gather', f.cast(cache, 'float32'), positions, { axis: 0 });
}

/**
 * @param x heads [batch, heads, places, size]
 * @param cosine of [batch, places, angles], or [places, angles]; so is `sine`
 */
export function rotated(
  f: Formula,
  x: MlOperand,
  [cosine, sine]: readonly MlOperand[],
  interleaved: boolean,
): MlOperand {
  const [batch, , places, size] = x.shape;
  const half = cosine.shape.at(-1)!;
  const [c, s] = [cosine, sine].map((one) => f.reshape(one, [one.shape.length === 3 ? batch : 1, 1, places, half]));
  const wide = f.cast(x, 'float32');
  const first = (i: number) => range(half, i, 2);
  const part = (i: number) => (interleaved ? f.picked(wide, 3, first(i)) : f.part(wide, 3, i * half, half));
  const [a, b] = [part(0), part(1)];
  const turned = f.plain(
    'concat',
    [f.of('sub', f.of('mul', c, a), f.of('mul', s, b)), f.of('add', f.of('mul', s, a), f.of('mul', c, b))],
    3,
  );
  const beside = range(half).flatMap((i) => [i, half + i]);
  const joined = interleaved ? f.picked(turned, 3, beside) : turned;
  const rest = size - 2 * half;
  const y = rest > 0 ? f.plain('concat', [joined, f.part(wide, 3, 2 * half, rest)], 3) : joined;
  return f.cast(y, x.dataType);
}
