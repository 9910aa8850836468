// One function of the elements of one or more tensors, broadcast against each other. All such operators share this;
// they only supply the function.
import type { Context, Dispatch, Shader, Spec, StorageType, Tensor, Uniforms } from '../../../contract/kernel';
import { computeType, inLanes, laneAliases, type Lanes, laneType, load, stored } from './lanes';
import { bindsWhole, partsAlong, rowSize } from './large';
import { linearMain, linearWorkgroups } from './linear';
import { broadcastDims, broadcastStrides, foldWalk, wideWalk, type Walk } from '../../../contract/shape';
import { walkIndices, walkUniforms } from './walk';

/** The element of an operand for output index i: its element i, its element 0, or the element of its own walk. */
type Access = 'same' | 'one' | 'walk';

interface Operand {
  readonly name: string;
  readonly storage: StorageType;
  readonly access: Access;
  /** True if it is read `lanes` elements at a time; otherwise one element serves all lanes. */
  readonly wide: boolean;
}

/** The facts on which the text of an elementwise shader depends, besides its operator's. */
export interface ElementwiseSpec extends Spec {
  readonly lanes: Lanes;
  /** Vectors that a thread computes in turn. */
  readonly items: number;
  readonly rank: number;
  readonly operands: readonly Operand[];
  readonly result: StorageType;
  /** True if `fn word(value: R) -> u32` of `functions` writes a second output. */
  readonly words?: boolean;
}

/**
 * The shader of an elementwise operator. `functions` returns WGSL with `fn apply(…) -> R`, one parameter per operand in
 * order: T_a is the type of operand a's values, T that of the first operand's, R that of the result's; F, I, U, B are
 * as in laneAliases.
 */
export function elementwiseShader<S extends Spec = Spec>(
  name: string,
  functions: (spec: ElementwiseSpec & S) => string,
): Shader<ElementwiseSpec & S> {
  return {
    name: `${name}__elementwise`,
    wgsl(spec) {
      const { lanes, items, rank, operands, result, words } = spec;
      const walked = operands.filter(({ access }) => access === 'walk');
      const names = walked.map(({ name: operand }) => operand);
      const values = operands.map((operand) => {
        const index = { same: 'i', one: '0', walk: `at_${operand.name}` }[operand.access];
        const value = load(operand.storage, operand.wide ? lanes : 1, `${operand.name}[${index}]`);
        return operand.wide || lanes === 1 ? value : `${laneType(computeType(operand.storage), lanes)}(${value})`;
      });
      const body = [
        walked.length > 0 ? walkIndices(rank, names) : '',
        `  let value = apply(${values.join(', ')});
  y[i] = ${stored(result, lanes, 'value')};${words ? ' words[i] = word(value);' : ''}`,
      ].filter(Boolean);
      return `${laneAliases(lanes)}\n${aliases(spec)}\n${functions(spec)}\n${linearMain(body.join('\n'), { items })}`;
    },
  };
}

function aliases({ lanes, operands, result }: ElementwiseSpec): string {
  const named = operands.map(({ name, storage }) => `alias T_${name} = ${laneType(computeType(storage), lanes)};`);
  const first = operands.length > 0 ? [`alias T = ${laneType(computeType(operands[0].storage), lanes)};`] : [];
  return [...first, `alias R = ${laneType(computeType(result), lanes)};`, ...named].join(' ');
}

export interface ElementwiseOptions<S> {
  /** The facts on which the operator's own text depends. */
  readonly spec?: S;
  readonly uniforms?: Uniforms;
  readonly f32?: readonly string[];
  readonly i32?: readonly string[];
  /**
   * A permutation of the operands' axes, for `output`: its axis i is axis perm[i]. Operands must then be bound whole.
   */
  readonly perm?: readonly number[];
  /** A word for each vector of the output. */
  readonly words?: Tensor;
}

/** Dispatches `shader` on operands (in the order of its parameters) that broadcast to the shape of `output`. */
export function elementwise<S extends Spec>(
  ctx: Context,
  shader: Shader<ElementwiseSpec & S>,
  operands: { readonly [name: string]: Tensor },
  output: Tensor,
  options: ElementwiseOptions<S> = {},
): void {
  if (output.size === 0) return;
  const names = Object.keys(operands);
  const tensors = Object.values(operands);
  if (
    !options.perm &&
    ![output, ...tensors].every((tensor) => bindsWhole(tensor, ctx.device)) &&
    inParts(ctx, shader, operands, output, options)
  )
    return;
  const { walk, wide, lanes, access } = plan(
    tensors.map(({ dims }) => dims),
    output.dims,
    options.perm,
  );
  // Starting a thread costs a software adapter as much as a few elements.
  const items = ctx.device.software ? 4 : 1;
  const spec: ElementwiseSpec = {
    lanes,
    items,
    rank: access.includes('walk') ? walk.dims.length : 0,
    operands: names.map((name, k) => ({ name, storage: tensors[k].storage, access: access[k], wide: wide[k] })),
    result: output.storage,
    ...(options.words && { words: true }),
  };
  const walked = names.filter((_, k) => access[k] === 'walk');
  const walkedOnly: Walk = { dims: walk.dims, strides: walk.strides.filter((_, k) => access[k] === 'walk') };
  const count = Math.ceil(output.size / lanes);
  const dispatch: Dispatch<ElementwiseSpec & S> = {
    shader,
    spec: { ...spec, ...options.spec } as ElementwiseSpec & S,
    inputs: Object.fromEntries(names.map((name, k) => [name, inLanes(inLine(tensors[k]), wide[k] ? lanes : 1)])),
    outputs: { y: inLanes(inLine(output), lanes), ...(options.words && { words: options.words }) },
    inPlace: Object.fromEntries(names.filter((_, k) => access[k] === 'same').map((name) => [name, 'y'])),
    uniforms: { count, ...(walked.length > 0 ? walkUniforms(walkedOnly, walked) : {}), ...options.uniforms },
    f32: options.f32,
    i32: options.i32,
    workgroups: linearWorkgroups(Math.ceil(count / items), ctx.device),
  };
  ctx.dispatch(dispatch);
}

/** The tensor in memory order: the shader defines the shape of its walk, which may be larger. */
function inLine(tensor: Tensor): Tensor {
  return { ...tensor, dims: [tensor.size] };
}

/** Dispatches the parts along the first axis longer than 1, if there is one; false if they would not fit, either. */
function inParts<S extends Spec>(
  ctx: Context,
  shader: Shader<ElementwiseSpec & S>,
  operands: { readonly [name: string]: Tensor },
  output: Tensor,
  options: ElementwiseOptions<S>,
): boolean {
  const named = Object.entries(operands);
  // With equal shapes, or single elements, any cut is possible.
  const flat = named.every(([, { dims, size }]) => size === 1 || dims.join() === output.dims.join());
  const dims = flat ? [output.size] : output.dims;
  const axis = dims.findIndex((dim) => dim > 1);
  const all = named.map(([name, tensor]) => {
    const full = flat
      ? [tensor.size]
      : [...new Array<number>(Math.max(0, dims.length - tensor.dims.length)).fill(1), ...tensor.dims];
    return { name, tensor, full, row: full[axis] > 1 ? rowSize(full, axis) : 0 };
  });
  const target = { name: '', tensor: output, full: dims, row: rowSize(dims, axis) };
  const parts = partsAlong(dims[axis], [...all, target], ctx.device);
  if (!parts) return false;
  for (const [begin, end] of parts) {
    const part = ({ tensor, full, row }: typeof target) =>
      row === 0
        ? ctx.reshape(tensor, full)
        : ctx.window(
            tensor,
            begin * row,
            full.map((dim, k) => (k === axis ? end - begin : dim)),
          );
    elementwise(ctx, shader, Object.fromEntries(all.map((each) => [each.name, part(each)])), part(target), options);
  }
  return true;
}

/** The walk over the output, in fours if possible. */
function plan(
  shapes: readonly (readonly number[])[],
  target: readonly number[],
  perm: readonly number[] = target.map((_, axis) => axis),
): { walk: Walk; wide: boolean[]; lanes: Lanes; access: Access[] } {
  const common = target.map((_, axis) => target[perm.indexOf(axis)]);
  // The output is part of the walk, last, so that folding keeps it simple.
  const strides = [
    ...shapes.map((dims) => {
      const own = broadcastStrides(dims, common);
      return perm.map((axis) => own[axis]);
    }),
    broadcastStrides(target, target),
  ];
  const folded = foldWalk({ dims: target, strides });
  const accesses = (walk: Walk): Access[] =>
    walk.strides.slice(0, -1).map((stride) => {
      if (stride.every((step) => step === 0)) return 'one';
      return stride.every((step, axis) => step === walk.strides.at(-1)![axis]) ? 'same' : 'walk';
    });
  const access = accesses(folded);
  const each = folded.strides.slice(0, -1);
  // Without a walk any size can be read in fours: the last lanes are past the end (see inLanes).
  if (!access.includes('walk')) return { walk: folded, wide: access.map((kind) => kind === 'same'), lanes: 4, access };
  const fours = wideWalk(folded, 4);
  if (!fours) return { walk: { dims: folded.dims, strides: each }, wide: access.map(() => true), lanes: 1, access };
  return {
    walk: { dims: fours.walk.dims, strides: fours.walk.strides.slice(0, -1) },
    wide: fours.wide.slice(0, -1),
    lanes: 4,
    access,
  };
}

/** Declares output 0 with the shape that `operands` broadcast to, and computes it. */
export function broadcastElementwise<S extends Spec>(
  ctx: Context,
  shader: Shader<ElementwiseSpec & S>,
  operands: { readonly [name: string]: Tensor },
  options: ElementwiseOptions<S> & { dtype?: Tensor['dtype'] } = {},
): void {
  const dims = broadcastDims(...Object.values(operands).map((operand) => operand.dims));
  elementwise(ctx, shader, operands, ctx.output(0, dims, options.dtype), options);
}
