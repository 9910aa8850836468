// Einsum: two operands as a matrix product if possible, all others element by element.
import {
  type Binding,
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { computeType, load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { sizeOf, stridesOf } from '../../../../contract/shape';
import { permuted, permuteInto } from '../shared/permute';
import { multiply } from './product/multiply';

/**
 * The equation on operands of known ranks: a label for each axis. Axes of an ellipsis are labeled "0", "1", … from the
 * last.
 */
interface Terms {
  readonly operands: readonly (readonly string[])[];
  readonly output: readonly string[];
}

function parse(equation: string, ranks: readonly number[]): Terms {
  const [left, right] = equation.replace(/\s/g, '').split('->');
  const texts = left.split(',');
  if (texts.length !== ranks.length) throw new KernelError(`Einsum ${equation} with ${ranks.length} operands`);
  let widest = 0;
  const operands = texts.map((text, i) => {
    const hidden = ranks[i] - text.replace('...', '').length;
    if (hidden < 0 || (hidden > 0 && !text.includes('...')))
      throw new KernelError(`Einsum: ${text} for an operand of ${ranks[i]} axes`);
    widest = Math.max(widest, hidden);
    return labels(text, hidden);
  });
  if (right !== undefined) return { operands, output: labels(right, widest) };
  // Without an output: labels that occur once, in alphabetical order, after the ellipsis.
  const counts = new Map<string, number>();
  for (const label of operands.flat()) counts.set(label, (counts.get(label) ?? 0) + 1);
  const single = [...counts]
    .filter(([label, count]) => count === 1 && /[A-Za-z]/.test(label))
    .map(([label]) => label)
    .sort();
  return { operands, output: [...labels(left.includes('...') ? '...' : '', widest), ...single] };
}

function labels(text: string, hidden: number): string[] {
  const ellipsis = Array.from({ length: hidden }, (_, i) => String(hidden - 1 - i));
  const [before, after] = text.split('...');
  return after === undefined ? [...before] : [...before, ...ellipsis, ...after];
}

function resolve(ctx: Context, equation: string): void {
  const tensors = ctx.inputs.map((_, i) => ctx.input(i));
  const terms = parse(
    equation,
    tensors.map(({ dims }) => dims.length),
  );
  const sizes = new Map<string, number>();
  terms.operands.forEach((names, i) =>
    names.forEach((label, axis) => {
      const [size, known] = [tensors[i].dims[axis], sizes.get(label) ?? 1];
      // Operands broadcast to each other, the axes of a diagonal do not.
      const fits = size === tensors[i].dims[names.indexOf(label)] && (size === known || size === 1 || known === 1);
      if (!fits) throw new KernelError(`Einsum ${equation}: ${label} is ${known} and ${size}`);
      sizes.set(label, known === 1 ? size : known);
    }),
  );
  const y = ctx.output(
    0,
    terms.output.map((label) => {
      const size = sizes.get(label);
      if (size === undefined) throw new KernelError(`Einsum ${equation}: no operand has ${label}`);
      return size;
    }),
  );
  if (y.size > 0) contract(ctx, terms, tensors, sizes, y);
}

/** In one dispatch or, with more operands than can be bound, the first two before the others. */
function contract(
  ctx: Context,
  { operands, output }: Terms,
  tensors: readonly Tensor[],
  known: Map<string, number>,
  y: Tensor,
): void {
  const sizes = new Map([...known].filter(([label]) => operands.some((names) => names.includes(label))));
  if (operands.length < ctx.device.maxStorageBuffersPerStage) {
    if (!asProduct(ctx, { operands, output }, tensors, sizes, y)) direct(ctx, { operands, output }, tensors, sizes, y);
    return;
  }
  const [a, b, ...others] = operands;
  const kept = [...new Set([...a, ...b])].filter((label) => [output, ...others].some((names) => names.includes(label)));
  const pair = ctx.temp(
    kept.map((label) => sizes.get(label)!),
    y.dtype,
  );
  contract(ctx, { operands: [a, b], output: kept }, tensors.slice(0, 2), sizes, pair);
  contract(ctx, { operands: [kept, ...others], output }, [pair, ...tensors.slice(2)], sizes, y);
}

/** Two operands without repeated or unshared labels: a @ b between transposes. */
function asProduct(
  ctx: Context,
  { operands, output }: Terms,
  tensors: readonly Tensor[],
  sizes: Map<string, number>,
  y: Tensor,
): boolean {
  const float = y.storage === 'f32' || y.storage === 'f16';
  const whole = operands.every(
    (names, i) =>
      new Set(names).size === names.length && names.every((label, axis) => tensors[i].dims[axis] === sizes.get(label)),
  );
  if (operands.length !== 2 || !float || !whole || new Set(output).size < output.length) return false;
  const [a, b] = operands;
  const both = a.filter((label) => b.includes(label));
  const unshared = [...a, ...b].some((label) => !output.includes(label) && !both.includes(label));
  if (unshared) return false;
  const batch = both.filter((label) => output.includes(label));
  const inner = both.filter((label) => !output.includes(label));
  const rows = a.filter((label) => !b.includes(label));
  const columns = b.filter((label) => !a.includes(label));
  const size = (names: readonly string[]) => sizeOf(names.map((label) => sizes.get(label)!));
  const arranged = (i: number, names: readonly string[]) =>
    permuted(
      ctx,
      tensors[i],
      names.map((label) => operands[i].indexOf(label)),
    );
  const made = [...batch, ...rows, ...columns];
  const direct = made.every((label, i) => label === output[i]);
  const product = direct
    ? y
    : ctx.temp(
        made.map((label) => sizes.get(label)!),
        y.dtype,
      );
  const [m, n, k, z] = [size(rows), size(columns), size(inner), size(batch)];
  multiply(ctx, {
    left: 'matrix',
    a: arranged(0, [...batch, ...rows, ...inner]),
    b: arranged(1, [...batch, ...inner, ...columns]),
    y: product,
    m,
    n,
    depth: k,
    taps: 1,
    z,
    lda: k,
    ldb: n,
    ldy: n,
    batch: 1,
    strides: { plain: { batch: [z] }, a: { a_batch: [m * k] }, b: { b_batch: [k * n], y_batch: [m * n] } },
  });
  if (!direct)
    permuteInto(
      ctx,
      product,
      output.map((label) => made.indexOf(label)),
      y,
    );
  return true;
}

interface DirectSpec extends Spec {
  readonly operands: number;
  readonly outer: number;
  readonly inner: number;
  readonly storage: StorageType;
}

const DIRECT: Shader<DirectSpec> = {
  name: 'einsum__any',
  wgsl({ operands, outer, inner, storage }) {
    const type = computeType(storage);
    const inputs = Array.from({ length: operands }, (_, i) => i);
    const walk = (count: number, sizes: string, rest: string, at: string, shift: number) =>
      Array.from({ length: count }, (_, i) => count - 1 - i)
        .map(
          (axis) => `{ let index = ${rest} % u.${sizes}_${axis}; ${rest} = ${rest} / u.${sizes}_${axis};
    ${inputs.map((i) => `${at}${i} += index * u.strides${i}_${axis + shift};`).join(' ')} }`,
        )
        .join('\n  ');
    return linearMain(`  var rest = i;
  ${inputs.map((i) => `var base${i} = 0u;`).join(' ')}
  ${walk(outer, 'outer', 'rest', 'base', 0)}
  var sum = ${type}(0);
  for (var step = 0u; step < u.steps; step++) {
    ${inputs.map((i) => `var at${i} = base${i};`).join(' ')}
    ${inner > 0 ? `var left = step;\n    ${walk(inner, 'inner', 'left', 'at', outer)}` : ''}
    sum += ${inputs.map((i) => load(storage, 1, `x${i}[at${i}]`)).join(' * ')};
  }
  y[i] = ${stored(storage, 1, 'sum')};`);
  },
};

function direct(
  ctx: Context,
  { operands, output }: Terms,
  tensors: readonly Tensor[],
  sizes: Map<string, number>,
  y: Tensor,
): void {
  const summed = [...sizes.keys()].filter((label) => !output.includes(label));
  const all = [...output, ...summed];
  const inputs: { [name: string]: Binding } = {};
  const steps = sizeOf(summed.map((label) => sizes.get(label)!));
  const uniforms: { [name: string]: number | readonly number[] } = {
    count: y.size,
    steps,
    outer: y.dims,
    inner: summed.map((label) => sizes.get(label)!),
  };
  tensors.forEach((tensor, i) => {
    const strides = stridesOf(tensor.dims);
    inputs[`x${i}`] = tensor;
    // A label that comes twice walks along the diagonal.
    uniforms[`strides${i}`] = all.map((label) =>
      operands[i].reduce((sum, name, axis) => sum + (name === label && tensor.dims[axis] > 1 ? strides[axis] : 0), 0),
    );
  });
  ctx.dispatch({
    shader: DIRECT,
    spec: { operands: tensors.length, outer: output.length, inner: summed.length, storage: y.storage },
    inputs,
    outputs: { y },
    uniforms,
    workgroups: linearWorkgroups(y.size, ctx.device),
    iterations: steps,
  });
}

const einsum: Kernel<string> = {
  op: 'Einsum',
  types: [['float32', 'float16', 'int32', 'uint32', 'int64']],
  attributes: (a) => a.text('equation', ''),
  resolve,
};

export default [einsum];
