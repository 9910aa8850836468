// A stable order of rows, by merging: an element's place is its own place in its run plus the number of elements of the
// other run before it.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { computeType, linearMain, linearWorkgroups, load, orderKey } from '../../wgsl';

/** x as [outer, n, inner]; row r is x[:, r, :]. */
export interface SortedRows {
  readonly x: Tensor;
  readonly outer: number;
  readonly n: number;
  readonly inner: number;
}

/** WGSL of row_before(a, b): true if row a sorts before row b. u has outer, n and inner. */
export function rowBefore(type: StorageType): string {
  return `${orderKey(computeType(type))}fn row_before(a: u32, b: u32) -> bool {
  for (var o = 0u; o < u.outer; o++) {
    for (var j = 0u; j < u.inner; j++) {
      let mine = key(${load(type, 1, 'x[(o * u.n + a) * u.inner + j]')});
      let theirs = key(${load(type, 1, 'x[(o * u.n + b) * u.inner + j]')});
      if (mine != theirs) { return mine < theirs; }
    }
  }
  return false;
}
`;
}

interface SortSpec extends Spec {
  readonly type: StorageType;
}

/** The size of the first runs: each row is compared with all others of its run. */
const RUN = 16;
const RUNS: Shader<SortSpec> = {
  name: 'counted__runs',
  wgsl: ({ type }) =>
    `${rowBefore(type)}${linearMain(`  let first = i / ${RUN}u * ${RUN}u;
  let end = min(first + ${RUN}u, u.n);
  var place = first;
  for (var other = first; other < end; other++) {
    if (other == i) { continue; }
    place += u32(row_before(other, i) || (other < i && !row_before(i, other)));
  }
  y[place] = i32(i);`)}`,
};

const MERGE: Shader<SortSpec> = {
  name: 'counted__merge',
  wgsl: ({ type }) =>
    `${rowBefore(type)}${linearMain(`  let pair = i / (2u * u.run) * 2u * u.run;
  let middle = min(pair + u.run, u.n);
  let mine = u32(order[i]);
  let second = i >= middle;
  // The rows of the other run before mine; equal rows of the first run come first.
  var low = select(middle, pair, second);
  let start = low;
  var high = select(min(pair + 2u * u.run, u.n), middle, second);
  while (low < high) {
    let half = (low + high) / 2u;
    let other = u32(order[half]);
    var before = false;
    if (second) { before = !row_before(mine, other); } else { before = row_before(other, mine); }
    if (before) { low = half + 1u; } else { high = half; }
  }
  y[select(i, pair + i - middle, second) + low - start] = i32(mine);`)}`,
};

/** The numbers of the rows, int32 [n], in ascending order of their contents. */
export function sortRows(ctx: Context, { x, outer, n, inner }: SortedRows): Tensor {
  const all = { count: n, outer, n, inner };
  const workgroups = linearWorkgroups(n, ctx.device);
  const spec: SortSpec = { type: x.storage };
  let order = ctx.temp([n], DType.int32);
  ctx.dispatch({ shader: RUNS, spec, inputs: { x }, outputs: { y: order }, uniforms: all, workgroups });
  for (let run = RUN; run < n; run *= 2) {
    const next = ctx.temp([n], DType.int32);
    ctx.dispatch({
      shader: MERGE,
      spec,
      inputs: { x, order },
      outputs: { y: next },
      uniforms: { ...all, run },
      workgroups,
    });
    order = next;
  }
  return order;
}
