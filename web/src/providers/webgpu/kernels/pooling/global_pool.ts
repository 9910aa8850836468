// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: all spatial axes become one element, channels last or second.
import {
  type Context,
  type Kernel,
  NHWC_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { inLanes, type Lanes, laneType, load, stored } from '../../wgsl/lanes';
import { inBatches } from '../../wgsl/large';
import { mathFunctions, orNan } from '../../wgsl/math';
import { type RowLayout, rowMain, rowsOf } from '../shared/rows';

/** The combination of the elements x, and the final step. */
const POOLS = {
  GlobalAveragePool: {
    start: '0.0',
    step: 'value += x;',
    merge: 'value += other_value;',
    finish: 'value / f32(u.length)',
  },
  GlobalMaxPool: {
    start: 'F(-infinity())',
    step: 'value = max(value, x);',
    merge: 'value = max(value, other_value);',
    finish: 'value',
  },
  GlobalLpPool: {
    start: '0.0',
    step: 'value += select(or_nan(pow(abs(x), F(u.p)), x), F(0.0), x == F(0.0));',
    merge: 'value += other_value;',
    finish: 'select(row_or_nan(pow(value, R(1.0 / u.p)), value), R(0.0), value == R(0.0))',
  },
} as const;
type Pool = keyof typeof POOLS;

interface GlobalSpec extends Spec {
  readonly pool: Pool;
  readonly layout: RowLayout;
  readonly storage: StorageType;
}

const SHADER: Shader<GlobalSpec> = {
  name: 'global_pool',
  wgsl({ pool, layout, storage }) {
    const { start, step, merge, finish } = POOLS[pool];
    const [lanes, ofRow]: readonly Lanes[] = [layout.wide === 'none' ? 1 : 4, layout.wide === 'rows' ? 4 : 1];
    const functions = {
      GlobalAveragePool: '',
      GlobalMaxPool: mathFunctions('infinity'),
      GlobalLpPool: orNan('or_nan', 'F', laneType('i32', lanes)) + orNan('row_or_nan', 'R', laneType('i32', ofRow)),
    };
    return (
      functions[pool] +
      rowMain({
        layout,
        element: `let x = ${load(storage, lanes, 'x[at]')};`,
        phases: [{ accumulators: [{ name: 'value', type: 'F', start }], step, merge }],
        finish: `y[row] = ${stored(storage, ofRow, finish)};`,
      })
    );
  },
};

function resolve(ctx: Context, pool: Pool, last: boolean, p: number): void {
  const x = ctx.input(0);
  const ones = x.dims.slice(2).map(() => 1);
  const y = ctx.output(0, last ? [x.dims[0], ...ones, x.dims[x.dims.length - 1]] : [x.dims[0], x.dims[1], ...ones]);
  inBatches(ctx, x.dims[0], { x, y }, (part) => poolImages(ctx, pool, last, p, part.x, part.y));
}

/** Reduces all spatial axes of x to one element of y. */
export function poolImages(ctx: Context, pool: Pool, last: boolean, p: number, x: Tensor, y: Tensor): void {
  const spatial = last ? x.dims.slice(1, -1) : x.dims.slice(2);
  const [images, channels] = [x.dims[0], last ? x.dims[x.dims.length - 1] : x.dims[1]];
  const length = spatial.reduce((product, size) => product * size, 1);
  const rows = last ? rowsOf(ctx, images, length, channels) : rowsOf(ctx, images * channels, length, 1);
  ctx.dispatch({
    shader: { ...SHADER, name: `global_pool__team_${rows.layout.team}` },
    spec: { pool, layout: rows.layout, storage: x.storage },
    inputs: { x: inLanes(x, rows.lanes) },
    outputs: { y: inLanes(y, rows.layout.wide === 'rows' ? 4 : 1) },
    uniforms: {
      ...rows.uniforms,
      ...(pool === 'GlobalAveragePool' && { length }),
      ...(pool === 'GlobalLpPool' && { p }),
    },
    f32: ['p'],
    workgroups: rows.workgroups,
  });
}

export default (Object.keys(POOLS) as Pool[]).flatMap((op) =>
  [false, true].map(
    (last): Kernel<number> => ({
      op,
      domain: last ? NHWC_DOMAIN : undefined,
      types: [['float32', 'float16']],
      attributes: (a) => a.number('p', 2),
      resolve: (ctx, p) => resolve(ctx, op, last, p),
    }),
  ),
);
