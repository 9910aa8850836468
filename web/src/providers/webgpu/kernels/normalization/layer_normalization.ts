// Normalization of rows: LayerNormalization, RMSNormalization and onnxruntime's variants (with a residual before:
// Skip…).
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { ended, EPILOGUE_F32, epilogueText, epilogueUniforms, readEpilogue } from '../../wgsl/epilogue';
import { inLanes, type Lanes, stored } from '../../wgsl/lanes';
import { inBatches } from '../../wgsl/large';
import type { Instruction, Program } from '../../wgsl/program';
import { normalizeAxis, sizeOf } from '../../../../contract/shape';
import { wordsOf, wordText } from '../shared/byte_words';
import { expanded } from '../shared/expand';
import { dispatchRows, type RowLayout, rowMain, type RowPhase, rowsOf, SPREAD, SPREAD_KEPT } from '../shared/rows';
import { Dialect } from '../../../../schema/dialect';

interface NormSpec extends Spec {
  /** True if the mean is subtracted first. */
  readonly centered: boolean;
  readonly layout: RowLayout;
  readonly storage: StorageType;
  /** Type of scale and bias: they may be wider than x. */
  readonly scale: StorageType;
  /** True if scale and bias have an element for each of x; otherwise one for each position in a row. */
  readonly whole: boolean;
  readonly biased: boolean;
  readonly skip: boolean;
  readonly skipBias: boolean;
  /** Parts of x, which are added up. */
  readonly parts: number;
  /** The wanted outputs besides y. */
  readonly mean: boolean;
  readonly inverse: boolean;
  readonly sum: boolean;
  readonly epilogue?: readonly Instruction[];
  /** True if y's bytes are written, too. */
  readonly words: boolean;
}

const ROOT_MEAN_SQUARE: RowPhase = {
  accumulators: [{ name: 'squares', type: 'F', start: '0.0' }],
  step: 'squares += x * x;',
  merge: 'squares += other_squares;',
  after: 'let inverse = 1.0 / sqrt(squares / f32(u.length) + u.epsilon);',
};

const SHADER: Shader<NormSpec> = {
  name: 'layer_normalization',
  wgsl({ centered, layout, storage, whole, biased, skip, skipBias, parts, mean, inverse, sum, epilogue, words }) {
    const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
    const terms = [
      ...Array.from({ length: parts }, (_, part) => `F(x_in[${part === 0 ? 'at' : `at + ${part}u * u.part_size`}])`),
      ...(skip ? ['F(skip[at % u.skip_size])'] : []),
      ...(skipBias ? ['F(skip_bias[step])'] : []),
    ];
    const place = whole ? 'at' : 'step';
    const normal = `(${centered ? '(x - mean) - rest' : 'x'}) * inverse
      * F(scale[${place}])${biased ? ` + F(bias[${place}])` : ''}`;
    const main = rowMain({
      layout,
      element: `let x = ${terms.join(' + ')};`,
      phases: centered ? SPREAD : [ROOT_MEAN_SQUARE],
      write: `let value = ${ended(epilogue, normal)};
        y[at] = ${stored(storage, lanes, 'value')};
        ${words ? `words[at] = ${wordText(epilogue!, 'value')};` : ''}
        ${sum ? `sum[at] = ${stored(storage, lanes, 'x')};` : ''}`,
      // Infinities have no distance from their mean; without a mean it is 0.
      finish: `${
        mean ? `means[row] = ${centered ? 'select(mean + rest, mean, abs(mean) > 3.4028234e38)' : '0.0'};` : ''
      } ${inverse ? 'inverses[row] = inverse;' : ''}`,
    });
    return epilogueText(epilogue, lanes) + main;
  },
};

interface Norm {
  readonly x: Tensor;
  /** True if x has a leading axis of parts that are added up. */
  readonly inParts?: boolean;
  readonly scale: Tensor;
  readonly bias?: Tensor;
  readonly skip?: Tensor;
  readonly skipBias?: Tensor;
  /** The first axis of a row. */
  readonly axis: number;
  readonly epsilon: number;
  readonly centered: boolean;
  /** Indices of the outputs for the mean, the inverse of the spread, and the sum with the skip. */
  readonly outputs: { readonly mean?: number; readonly inverse?: number; readonly sum?: number };
  /** The steps applied to y's elements. */
  readonly epilogue?: Program;
}

/** True if `small` equals the last axes of `dims`, so that it is repeated along the axes before. */
function repeats(small: readonly number[], dims: readonly number[]): boolean {
  const own = small.slice(small.findIndex((dim) => dim !== 1));
  return own.length <= dims.length && own.every((dim, i) => dim === dims[dims.length - own.length + i]);
}

function normalize(ctx: Context, n: Norm): void {
  const { skip, skipBias } = n;
  const dims = n.inParts ? n.x.dims.slice(1) : n.x.dims;
  const parts = n.inParts ? n.x.dims[0] : 1;
  const x = parts === 1 ? ctx.reshape(n.x, dims) : n.x;
  const { dtype } = n.inParts ? n.skip! : n.x; // sums are float32
  const y = ctx.output(0, dims, dtype);
  const outer = sizeOf(dims.slice(0, n.axis));
  const length = sizeOf(dims.slice(n.axis));
  if (skipBias && skipBias.size !== length)
    throw new KernelError(`a bias of shape [${skipBias.dims}] before the normalization of rows of ${length} elements`);
  if (skip && !repeats(skip.dims, dims)) throw new KernelError(`a skip of shape [${skip.dims}] for [${dims}]`);
  const statistics = dims.map((dim, axis) => (axis < n.axis ? dim : 1));
  const extra = (i: number | undefined, dims: readonly number[], dtype: DType) =>
    i !== undefined && ctx.wants(i) ? ctx.output(i, dims, dtype) : undefined;
  const means = extra(n.outputs.mean, statistics, DType.float32);
  const inverses = extra(n.outputs.inverse, statistics, DType.float32);
  const sum = extra(n.outputs.sum, dims, dtype);
  const words = wordsOf(ctx, y, length % 4 === 0);
  if (y.size === 0) return;
  // Usually they have a row's shape; other shapes are repeated, for a row or, if necessary, for all of x.
  const affine = [n.scale, n.bias].filter((given) => given !== undefined);
  const whole = affine.some(
    (given) =>
      given.size !== length && sizeOf(given.dims.slice(0, Math.max(0, n.axis + given.dims.length - dims.length))) > 1,
  );
  const [scale, bias] = affine.map((given) =>
    given.size === length && !whole ? given : expanded(ctx, given, whole ? dims : dims.slice(n.axis)),
  );
  const { centered, epsilon, epilogue } = n;
  const common = { whole, length, parts, scale, bias, skipBias, centered, epsilon, epilogue };
  // A shape repeated for some of the rows can only be combined with all rows; so can parts, which few rows have.
  if (whole || parts > 1 || (skip && skip.size !== y.size))
    return normalizeRows(ctx, { ...common, rows: outer, x, y, skip, means, inverses, sum, words });
  const of = (tensor: Tensor | undefined) => tensor && ctx.reshape(tensor, [outer, tensor.size / outer]);
  const byRow = {
    x: of(x)!,
    y: of(y)!,
    skip: of(skip),
    means: of(means),
    inverses: of(inverses),
    sum: of(sum),
    words: of(words),
  };
  inBatches(ctx, outer, byRow, (part) => normalizeRows(ctx, { ...common, ...part, rows: part.x.dims[0] }));
}

interface Normalized
  extends Pick<Norm, 'x' | 'scale' | 'bias' | 'skip' | 'skipBias' | 'centered' | 'epsilon' | 'epilogue'> {
  readonly y: Tensor;
  readonly rows: number;
  readonly length: number;
  /** Parts of x, [parts, ...], which are added up. */
  readonly parts: number;
  readonly whole: boolean;
  readonly means?: Tensor;
  readonly inverses?: Tensor;
  readonly sum?: Tensor;
  readonly words?: Tensor;
}

function normalizeRows(
  ctx: Context,
  { x, y, skip, skipBias, scale, bias, means, inverses, sum, words, ...n }: Normalized,
): void {
  const rows = rowsOf(ctx, n.rows, n.length, 1);
  const lanes = rows.lanes;
  const dispatch = {
    shader: { ...SHADER, name: `layer_normalization__team_${rows.layout.team}` },
    spec: {
      centered: n.centered,
      layout: rows.layout,
      storage: y.storage,
      scale: scale.storage,
      whole: n.whole,
      biased: bias !== undefined,
      skip: skip !== undefined,
      skipBias: skipBias !== undefined,
      parts: n.parts,
      mean: means !== undefined,
      inverse: inverses !== undefined,
      sum: sum !== undefined,
      words: words !== undefined,
      epilogue: n.epilogue?.instructions,
    },
    inputs: {
      x_in: inLanes(x, lanes),
      scale: inLanes(scale, lanes),
      ...(bias && { bias: inLanes(bias, lanes) }),
      ...(skip && { skip: inLanes(skip, lanes) }),
      ...(skipBias && { skip_bias: inLanes(skipBias, lanes) }),
    },
    outputs: {
      y: inLanes(y, lanes),
      ...(means && { means }),
      ...(inverses && { inverses }),
      ...(sum && { sum: inLanes(sum, lanes) }),
      ...(words && { words }),
    },
    uniforms: {
      ...rows.uniforms,
      length: n.length,
      epsilon: n.epsilon,
      ...(n.parts > 1 && { part_size: y.size / lanes }),
      ...(skip && { skip_size: skip.size / lanes }),
      ...epilogueUniforms(n.epilogue),
    },
    f32: ['epsilon', ...EPILOGUE_F32],
    workgroups: rows.workgroups,
  };
  dispatchRows(ctx, dispatch, n.centered ? SPREAD_KEPT : { inverse: 'F' }, ['means', 'inverses']);
}

/** Divides rows of x by the root of the mean of their squares, times `scale`, of a row's length. */
export function rootMeanSquare(
  ctx: Context,
  norm: Pick<Normalized, 'x' | 'y' | 'rows' | 'length' | 'epsilon'> & { readonly scale: Tensor },
): void {
  normalizeRows(ctx, { ...norm, parts: 1, whole: false, centered: false });
}

interface NormAttributes {
  readonly axis: number;
  readonly epsilon: number;
  /** For the forms with a residual: true if x is a product's parts (passes/placed/product_parts.py). */
  readonly parts: boolean;
  readonly epilogue?: Program;
}
const attributes =
  (epsilon: number) =>
  (a: Attributes): NormAttributes => ({
    axis: a.integer('axis', -1),
    epsilon: a.number('epsilon', epsilon),
    parts: a.integer(Dialect.X_PARTS, 0) !== 0,
    epilogue: readEpilogue(a),
  });
const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

/** LayerNormalization(x, scale, bias?) and its variants without the mean. */
function plain(op: string, centered: boolean, domain?: string): Kernel<NormAttributes> {
  return {
    op,
    domain,
    types: [FLOATS],
    features: ['steps', 'words'],
    attributes: attributes(1e-5),
    resolve(ctx, { axis, epsilon, epilogue }) {
      const x = ctx.input(0);
      const outputs = centered ? { mean: 1, inverse: 2 } : { inverse: 1 };
      normalize(ctx, {
        x,
        scale: ctx.input(1),
        bias: centered ? ctx.inputs[2] : undefined,
        axis: normalizeAxis(axis, x.dims.length),
        epsilon,
        centered,
        outputs,
        epilogue,
      });
    },
  };
}

/** SkipLayerNormalization(x, skip, scale, shift?, bias?): the rows of x + skip + bias. */
function skipping(op: string, centered: boolean): Kernel<NormAttributes> {
  return {
    op,
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS],
    features: ['parts', 'steps', 'words'],
    attributes: attributes(1e-12),
    resolve(ctx, { epsilon, parts, epilogue }) {
      const x = ctx.input(0);
      const [bias, skipBias] = centered ? [ctx.inputs[3], ctx.inputs[4]] : [undefined, ctx.inputs[3]];
      normalize(ctx, {
        x,
        skip: ctx.input(1),
        scale: ctx.input(2),
        bias,
        skipBias,
        inParts: parts,
        axis: x.dims.length - (parts ? 2 : 1),
        epsilon,
        centered,
        outputs: { mean: 1, inverse: 2, sum: 3 },
        epilogue,
      });
    },
  };
}

export default [
  plain('LayerNormalization', true),
  plain('RMSNormalization', false),
  plain('SimplifiedLayerNormalization', false),
  plain('SimplifiedLayerNormalization', false, MICROSOFT_DOMAIN),
  skipping('SkipLayerNormalization', true),
  skipping('SkipSimplifiedLayerNormalization', false),
];
