// Softmax, LogSoftmax and Hardmax along one axis: the largest element, the sum of exponentials, the result.
import type { Context, Kernel, Shader, Spec, StorageType } from '../../../../contract/kernel';
import { ended, EPILOGUE_F32, epilogueText, epilogueUniforms, readEpilogue } from '../../wgsl/epilogue';
import { inLanes, laneType, load, stored } from '../../wgsl/lanes';
import { inBatches } from '../../wgsl/large';
import { orNan } from '../../wgsl/math';
import type { Instruction, Program } from '../../wgsl/program';
import { normalizeAxis } from '../../../../contract/shape';
import { aroundAxis, dispatchRows, type Kept, type RowLayout, rowMain, type RowPhase, rowsOf } from '../shared/rows';

interface SoftmaxSpec extends Spec {
  readonly kind: Kind;
  readonly layout: RowLayout;
  readonly storage: StorageType;
  readonly epilogue?: readonly Instruction[];
}

const LARGEST: RowPhase = {
  accumulators: [{ name: 'largest', type: 'F', start: '-infinity()' }],
  step: 'largest = max(largest, x);',
  merge: 'largest = max(largest, other_largest);',
};
/** A NaN or an infinity among the elements makes this, and therefore the whole row, NaN. */
const EXPONENTIALS: RowPhase = {
  accumulators: [{ name: 'total', type: 'F', start: '0.0' }],
  step: 'let d = x - largest; total += x_or_nan(exp(d), d);',
  merge: 'total += other_total;',
};
/** The position of the first of the largest elements. */
const FIRST: RowPhase = {
  accumulators: [{ name: 'first', type: 'K', start: '0xffffffffu' }],
  step: 'first = min(first, select(K(0xffffffffu), k, x == F(largest)));',
  merge: 'first = min(first, other_first);',
};

type Kind = 'Softmax' | 'LogSoftmax' | 'Hardmax';
const KINDS: { readonly [kind in Kind]: { phases: readonly RowPhase[]; kept: Kept; result: string } } = {
  Softmax: { phases: [LARGEST, EXPONENTIALS], kept: { largest: 'F', total: 'F' }, result: 'exp(x - largest) / total' },
  LogSoftmax: {
    phases: [LARGEST, { ...EXPONENTIALS, after: 'let shift = row_or_nan(log(total), total);' }],
    kept: { largest: 'F', shift: 'F' },
    result: '(x - largest) - shift',
  },
  Hardmax: {
    phases: [LARGEST, FIRST],
    kept: { first: 'K' },
    result: 'select(F(0.0), F(1.0), k == K(first))',
  },
};

const SHADER: Shader<SoftmaxSpec> = {
  name: 'softmax__rows',
  wgsl({ kind, layout, storage, epilogue }) {
    const lanes = layout.wide === 'none' ? 1 : 4;
    const ofRow = layout.wide === 'rows' ? 4 : 1;
    const functions = [
      epilogueText(epilogue, lanes, ['infinity']),
      orNan('x_or_nan', 'F', laneType('i32', lanes)),
      orNan('row_or_nan', 'R', laneType('i32', ofRow)),
    ];
    return (
      functions.join('\n') +
      rowMain({
        layout,
        element: `let x = ${load(storage, lanes, 'x[at]')};`,
        phases: KINDS[kind].phases,
        write: `y[at] = ${stored(storage, lanes, ended(epilogue, KINDS[kind].result))};`,
      })
    );
  },
};

function kernel(kind: Kind): Kernel<{ axis: number; epilogue?: Program }> {
  return {
    op: kind,
    types: [['float32', 'float16']],
    features: ['steps'],
    attributes: (a) => ({ axis: a.integer('axis', -1), epilogue: readEpilogue(a) }),
    resolve(ctx: Context, { axis, epilogue }) {
      const x = ctx.input(0);
      const y = ctx.output(0, x.dims);
      if (x.size === 0) return;
      const [outer, length, inner] =
        x.dims.length === 0 ? [1, 1, 1] : aroundAxis(x, normalizeAxis(axis, x.dims.length));
      const size = length * inner;
      inBatches(ctx, outer, { x: ctx.reshape(x, [outer, size]), y: ctx.reshape(y, [outer, size]) }, (part) => {
        const rows = rowsOf(ctx, part.x.dims[0], length, inner);
        const dispatch = {
          shader: { ...SHADER, name: `${kind.toLowerCase()}__team_${rows.layout.team}` },
          spec: { kind, layout: rows.layout, storage: x.storage, epilogue: epilogue?.instructions },
          inputs: { x: inLanes(part.x, rows.lanes) },
          outputs: { y: inLanes(part.y, rows.lanes) },
          uniforms: { ...rows.uniforms, ...epilogueUniforms(epilogue) },
          f32: EPILOGUE_F32,
          workgroups: rows.workgroups,
        };
        dispatchRows(ctx, dispatch, KINDS[kind].kept);
      });
    },
  };
}

const KERNELS = (Object.keys(KINDS) as Kind[]).map(kernel);

/** For the losses. */
export const logSoftmax = KERNELS.find(({ op }) => op === 'LogSoftmax')!;

export default KERNELS;
