// A product of which each thread writes the vector of its own index: for devices whose threads are fragments.
import { type Context, KernelError, type Shader } from '../../../../../contract/kernel';
import { ended, epilogueText, readsBias } from '../../../wgsl/epilogue';
import { inLanes, type Lanes, laneAliases, stored } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { ending } from './ending';
import { leftOperand } from './left_operand';
import type { Product } from './product';
import { type LeftKind, type ProductSpec, SHADER_NAMES } from './spec';

/** y has no gaps. */
interface FragmentSpec extends ProductSpec {
  /** Of matrices: their batch axes, and their rows as the last one, in the order in which they lie in y. */
  readonly order: readonly number[];
  /** Each channel is a group of its own: what is read of b are numbers for the channels of y. */
  readonly each?: boolean;
}

function fragmentProduct({ left, each }: FragmentSpec): Shader<FragmentSpec> {
  return { name: `${SHADER_NAMES[left]}__fragment${each ? '_each' : ''}`, wgsl: text };
}

/** Statements that declare z, row and column (in vectors) of vector i of y, which has `columns` in a row. */
function placeText({ left, order, batch }: FragmentSpec): string {
  if (left !== 'matrix') return PLACES[left];
  const lines = [...order].reverse().map((axis) => {
    const size = axis === batch ? 'u.m' : `u.batch_${axis}`;
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
  const { aVec, bVec, storage, epilogue, each } = spec;
  const left = leftOperand(spec);
  return `${laneAliases(bVec)}
${epilogueText(epilogue, bVec)}
${linearMain(`  let columns = u.n / ${bVec}u;
  ${placeText(spec)}
  ${left.base}
  ${left.row(0, 'row')}
  var sum = F(0.0);
  ${left.openTaps}
    ${left.tap(0)}
    ${left.masked ? 'if (in_0) {' : '{'}
    ${each ? 'sum += F(a[at_0 + column]) * F(b[b_row * u.ldb + column]);' : depthText(aVec)}
    }
  ${left.closeTaps}
  ${endText(spec)}
  y[i] = ${stored(storage, bVec, 'value')};`)}`;
}

/** The sum over the channels of a tap. */
function depthText(aVec: 1 | 4): string {
  const steps =
    aVec === 1
      ? ['sum += F(f32(a[at_0 + k])) * F(b[at_b]);']
      : [
          'let a_k = vec4<f32>(a[at_0 + k]);',
          ...[...'xyzw'].map((lane, t) => `sum += a_k.${lane} * F(b[at_b + ${t}u * u.ldb]);`),
        ];
  return `var at_b = b_base + b_row * u.ldb + column;
    for (var k = 0u; k < u.depth / ${aVec}u; k++) {
      ${steps.join('\n      ')}
      at_b += ${aVec}u * u.ldb;
    }`;
}

/** Statements that declare the value of what was summed up. */
function endText({ bVec, bias, scaled, epilogue }: FragmentSpec): string {
  const beta = scaled ? 'u.beta * ' : '';
  const terms = [scaled ? 'u.alpha * sum' : 'sum'];
  const before: string[] = [];
  if (bias === 'row') {
    before.push('let own_bias = F(bias[column_base + column]);');
    if (!readsBias(epilogue)) terms.push(`${beta}own_bias`);
  }
  if (bias === 'any') terms.push(`${beta}${anyBias(bVec)}`);
  return `${before.join('')} let value = ${ended(epilogue, terms.join(' + '), 'F(residual[i])', 'own_bias')};`;
}

function anyBias(lanes: Lanes): string {
  const all = Array.from(
    { length: lanes },
    (_, t) => `f32(bias[row * u.bias_row + (column * ${lanes}u + ${t}u) * u.bias_column])`,
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

/** A thread for each vector of y. */
export function multiplyFragments(ctx: Context, p: Product, given: ProductSpec): void {
  const { bVec } = given;
  const spec: FragmentSpec = {
    ...given,
    order: p.left === 'matrix' ? orderInMemory(p) : [],
    ...(p.each && { aVec: bVec, each: true }),
  };
  const end = ending(p, spec);
  const count = p.y.size / bVec;
  ctx.dispatch({
    shader: fragmentProduct(spec),
    spec,
    inputs: { a: inLanes(p.a, spec.aVec), b: inLanes(p.b, bVec), ...end.inputs },
    outputs: { y: inLanes(p.y, bVec) },
    uniforms: {
      ...end.uniforms,
      ...(p.each && { group_channels: 0, group_columns: 0 }),
      count,
      depth: p.depth,
      lda: p.lda / spec.aVec,
      ldb: p.ldb / bVec,
    },
    f32: end.f32,
    workgroups: linearWorkgroups(count, ctx.device),
  });
}
