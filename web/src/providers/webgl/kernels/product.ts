// A product of which each thread writes the vector of its own index: for devices whose threads are fragments.
import { type Context, KernelError, type Shader, type Tensor } from '../../../contract/kernel';
import { ended, epilogueText, readsBias } from '../../webgpu/wgsl/epilogue';
import { inLanes, type Lanes, laneAliases, linearMain, linearWorkgroups, stored } from '../../webgpu/wgsl';
import { ending } from '../../webgpu/kernels/matmul/product/ending';
import { leftOperand } from '../../webgpu/kernels/matmul/product/left_operand';
import type { Product } from '../../webgpu/kernels/matmul/product/product';
import { type LeftKind, type ProductSpec, SHADER_NAMES } from '../../webgpu/kernels/matmul/product/spec';

/** y has no gaps. */
interface FragmentSpec extends ProductSpec {
  /** Of matrices: their batch axes, and their rows as the last one, in the order in which they lie in y. */
  readonly order: readonly number[];
  /** Each channel is a group of its own: what is read of b are numbers for the channels of y. */
  readonly each?: boolean;
  /** Parts of the rows, of one length; a thread makes a vector of each, and what it reads of b serves all. */
  readonly parts: number;
}

/** Parts of rows: as many outputs as a draw has on every device. */
const PARTS = 4;
/** Vectors of y from which parts pay. */
const WORTH_PARTS = 4096;

function fragmentProduct({ left, each, parts }: FragmentSpec): Shader<FragmentSpec> {
  return { name: `${SHADER_NAMES[left]}__fragment_${each ? 'each_' : ''}${parts}`, wgsl: text };
}

const numbered = (count: number, text: (j: number) => string, separator = '\n  ') =>
  Array.from({ length: count }, (_, j) => text(j)).join(separator);

/** Statements that declare z, row and column (in vectors) of vector i of y, which has `columns` in a row. */
function placeText({ left, order, batch }: FragmentSpec): string {
  if (left !== 'matrix') return PLACES[left];
  const lines = [...order].reverse().map((axis) => {
    const size = axis === batch ? 'u.part' : `u.batch_${axis}`;
    return `let place_${axis} = left % ${size}; left = left / ${size};`;
  });
  const z = Array.from({ length: batch }, (_, axis) => axis).reduce(
    (sum, axis) => (sum ? `(${sum}) * u.batch_${axis} + place_${axis}` : `place_${axis}`),
    '',
  );
  return `let column = i % columns; var left = i / columns;
  ${lines.join('\n  ')}
  let row = place_${batch}; let z = ${z || '0u'};`;
}

const PLACES: { readonly [kind in Exclude<LeftKind, 'matrix'>]: string } = {
  windows: 'let z = i % u.ldy / columns; let row = i / u.ldy; let column = i % u.ldy % columns;',
  phases: `let pixel = i / u.ldy;
  let out_x = pixel % u.full_w; let out_y = pixel / u.full_w % u.full_h; let image = pixel / (u.full_w * u.full_h);
  let z = (out_y % u.stride_h * u.stride_w + out_x % u.stride_w) * u.groups + i % u.ldy / columns;
  let row = (image * u.out_h + out_y / u.stride_h) * u.out_w + out_x / u.stride_w;
  let column = i % u.ldy % columns;`,
};

function text(spec: FragmentSpec): string {
  const { bVec, storage, epilogue, each, parts } = spec;
  const left = leftOperand(spec);
  const all = (line: (j: number) => string) => numbered(parts, line);
  // Rows beyond the end are done again, and nobody reads them.
  const rows = parts === 1 ? 'let row_0 = row;' : all((j) => `let row_${j} = min(row + ${j}u * u.part, u.m - 1u);`);
  return `${laneAliases(bVec)}
${epilogueText(epilogue, bVec)}
${linearMain(`  let columns = u.n / ${bVec}u;
  ${placeText(spec)}
  ${left.base}
  ${rows}
  ${all((j) => left.row(j, `row_${j}`))}
  ${all((j) => `var sum_${j} = F(0.0);`)}
  ${left.openTaps}
    ${all((j) => left.tap(j))}
    ${each ? eachText(spec, left.masked) : depthText(spec, left.masked)}
  ${left.closeTaps}
  ${all((j) => `{ ${endText(spec, j)} ${outputName(spec, j)}[i] = ${stored(storage, bVec, 'value')}; }`)}`)}`;
}

const outputName = ({ parts }: Pick<FragmentSpec, 'parts'>, j: number) => (parts === 1 ? 'y' : `part_${j}`);

const seen = (masked: boolean, j: number, type: string, value: string) =>
  masked ? `select(${type}(0.0), ${type}(${value}), in_${j})` : `${type}(${value})`;

/** The numbers of a tap, one for each channel. */
function eachText({ parts }: FragmentSpec, masked: boolean): string {
  return `let b_0 = F(b[b_row * u.ldb + column]);
    ${numbered(parts, (j) => `sum_${j} += ${seen(masked, j, 'F', `a[at_${j} + column]`)} * b_0;`)}`;
}

/** The sum over the channels of a tap. */
function depthText({ aVec, parts }: FragmentSpec, masked: boolean): string {
  const lanes = aVec === 1 ? [''] : ['.x', '.y', '.z', '.w'];
  const type = aVec === 1 ? 'f32' : 'vec4<f32>';
  return `var at_b = b_base + b_row * u.ldb + column;
    for (var k = 0u; k < u.depth / ${aVec}u; k++) {
      ${lanes.map((_, t) => `let b_${t} = F(b[at_b + ${t}u * u.ldb]);`).join(' ')}
      ${numbered(parts, (j) => `let a_${j} = ${seen(masked, j, type, `a[at_${j} + k]`)};`)}
      ${numbered(parts, (j) => lanes.map((lane, t) => `sum_${j} += a_${j}${lane} * b_${t};`).join(' '))}
      at_b += ${aVec}u * u.ldb;
    }`;
}

/** Statements that declare the value of what was summed up for row j. */
function endText({ bVec, bias, scaled, epilogue, parts }: FragmentSpec, j: number): string {
  const beta = scaled ? 'u.beta * ' : '';
  const terms = [scaled ? `u.alpha * sum_${j}` : `sum_${j}`];
  const before: string[] = [];
  if (bias === 'row') {
    before.push('let own_bias = F(bias[column_base + column]);');
    if (!readsBias(epilogue)) terms.push(`${beta}own_bias`);
  }
  if (bias === 'any') terms.push(`${beta}${anyBias(bVec, j)}`);
  // In y the parts of a matrix lie behind each other.
  const at = parts === 1 ? 'i' : `(i / u.row / u.part * u.m + row_${j}) * u.row + i % u.row`;
  return `${before.join('')} let value = ${ended(epilogue, terms.join(' + '), `F(residual[${at}])`, 'own_bias')};`;
}

function anyBias(lanes: Lanes, j: number): string {
  const all = Array.from(
    { length: lanes },
    (_, t) => `f32(bias[row_${j} * u.bias_row + (column * ${lanes}u + ${t}u) * u.bias_column])`,
  );
  return `F(${all.join(', ')})`;
}

/** The axes of y's rows, the batch's and then the rows, in the order in which they lie in memory, without gaps. */
function orderInMemory({ m, n, ldy, strides, y }: Product): number[] {
  const sizes = [...((strides?.plain?.batch as readonly number[] | undefined) ?? []), m];
  const steps = [...((strides?.b?.y_batch as readonly number[] | undefined) ?? []), ldy];
  const order = steps.map((_, axis) => axis).sort((a, b) => steps[b] - steps[a] || a - b);
  let expected = n;
  for (const axis of [...order].reverse()) {
    if (sizes[axis] > 1 && steps[axis] !== expected)
      throw new KernelError(`a product into some columns of [${y.dims}]`, true);
    expected *= sizes[axis];
  }
  return order;
}

/** A thread for each vector of y, or for one of each part of its rows. */
export function multiplyFragments(ctx: Context, p: Product, given: ProductSpec): void {
  const { bVec } = given;
  const order = p.left === 'matrix' ? orderInMemory(p) : [];
  const inOrder = p.left !== 'phases' && order.every((axis, i) => axis === i);
  const parts = inOrder && p.m >= PARTS * PARTS && p.y.size / bVec >= WORTH_PARTS ? PARTS : 1;
  const spec: FragmentSpec = { ...given, order, parts, ...(p.each && { aVec: bVec, each: true }) };
  const end = ending(p, spec);
  const part = Math.ceil(p.m / parts);
  const row = (p.left === 'matrix' ? p.n : p.ldy) / bVec;
  const count = parts === 1 ? p.y.size / bVec : (p.y.size / bVec / p.m) * part;
  const made = Array.from({ length: parts }, () => (parts === 1 ? p.y : ctx.temp([count * bVec], p.y.dtype)));
  ctx.dispatch({
    shader: fragmentProduct(spec),
    spec,
    inputs: { a: inLanes(p.a, spec.aVec), b: inLanes(p.b, bVec), ...end.inputs },
    outputs: Object.fromEntries(made.map((y, j) => [outputName(spec, j), inLanes(y, bVec)])),
    uniforms: {
      ...end.uniforms,
      ...(p.each && { group_channels: 0, group_columns: 0 }),
      count,
      part,
      row,
      depth: p.depth,
      lda: p.lda / spec.aVec,
      ldb: p.ldb / bVec,
    },
    f32: end.f32,
    workgroups: linearWorkgroups(count, ctx.device),
  });
  if (parts > 1) join(ctx, made, p.y, { m: p.m, part, row }, bVec);
}

/** Puts the parts of rows behind each other. */
function join(
  ctx: Context,
  parts: readonly Tensor[],
  y: Tensor,
  sizes: { readonly m: number; readonly part: number; readonly row: number },
  lanes: Lanes,
): void {
  const count = y.size / lanes;
  ctx.dispatch({
    shader: JOIN,
    spec: { parts: parts.length },
    inputs: Object.fromEntries(parts.map((part, j) => [`part_${j}`, inLanes(part, lanes)])),
    outputs: { y: inLanes(y, lanes) },
    uniforms: { count, ...sizes },
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

const JOIN: Shader<{ readonly parts: number }> = {
  name: 'product_parts__fragment',
  wgsl: ({ parts }) => {
    const last = parts - 1;
    const choice = numbered(last, (j) => `if (part == ${j}u) { y[i] = part_${j}[at]; } else`, ' ');
    return linearMain(`  let row = i / u.row % u.m;
  let part = row / u.part;
  let at = (i / u.row / u.m * u.part + row % u.part) * u.row + i % u.row;
  ${choice} { y[i] = part_${last}[at]; }`);
  },
};
