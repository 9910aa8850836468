// Operators that change the shape or order of elements.
import { type DTypeName, NHWC_DOMAIN } from '../../../contract/kernel';
import { broadcastDims, sizeOf, normalizeAxis, normalizeAxes } from '../../../contract/shape';
import type { Call, Emit, MlOperator } from '../operator';
import { axesUpTo } from './shared/calls';
import type { Layout } from './shared/images';
import { MOVED } from './shared/types';

const ANY: readonly DTypeName[] = [...MOVED, 'uint32'];

/** A reshape, computed from the known facts of the call. */
const view =
  (shapeOf: (call: Call) => readonly number[]) =>
  (call: Call): Emit => {
    const shape = shapeOf(call);
    return (f, [x]) => f.plain('reshape', x, shape);
  };

function asked({ inputs, attributes, data }: Call): number[] {
  const { dims, size } = inputs[0]!;
  const copied = attributes.integer('allowzero', 0) === 0;
  const shape = data(1)!.map((d, i) => (d === 0 && copied ? dims[i] : d));
  const known = shape.reduce((product, d) => (d < 0 ? product : product * d), 1);
  return shape.map((d) => (d < 0 ? size / known : d));
}

function flattened({ inputs, attributes }: Call): number[] {
  const { dims } = inputs[0]!;
  const axis = attributes.integer('axis', 1);
  const at = axis < 0 ? axis + dims.length : axis;
  return [sizeOf(dims.slice(0, at)), sizeOf(dims.slice(at))];
}

function squeezed({ inputs, data }: Call): number[] {
  const { dims } = inputs[0]!;
  const axes = data(1)?.map((axis) => normalizeAxis(axis, dims.length));
  return dims.filter((dim, i) => (axes?.length ? !axes.includes(i) : dim !== 1));
}

function unsqueezed({ inputs, data }: Call): number[] {
  const rest = [...inputs[0]!.dims];
  const given = data(1)!;
  const rank = rest.length + given.length;
  const axes = normalizeAxes(given, rank);
  return Array.from({ length: rank }, (_, i) => (axes.includes(i) ? 1 : rest.shift()!));
}

function transpose({ inputs, attributes }: Call): Emit {
  const backwards = inputs[0]!.dims.map((_, i, all) => all.length - 1 - i);
  const permutation = attributes.integers('perm', backwards);
  return (f, [x]) => f.plain('transpose', x, { permutation });
}

function expand({ inputs, data }: Call): Emit {
  const shape = broadcastDims(inputs[0]!.dims, data(1)!);
  return (f, [x]) => f.plain('expand', x, shape);
}

const tile =
  ({ data }: Call): Emit =>
  (f, [x]) =>
    f.plain('tile', x, data(1)!);

function trilu({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const most = dims[dims.length - 2] + dims[dims.length - 1];
  const diagonal = Math.min(Math.max(data(1)?.[0] ?? 0, -most), most);
  const options = { upper: attributes.integer('upper', 1) === 1, diagonal };
  return (f, [x]) => {
    const byte = x.dataType === 'uint8' || x.dataType === 'int8';
    return f.cast(f.plain('triangular', f.cast(x, byte ? 'int32' : x.dataType), options), x.dataType);
  };
}

interface Blocks {
  readonly parts: readonly number[];
  readonly permutation: readonly number[];
  readonly shape: readonly number[];
}

/** By mode and layout: the axes of [batch, …] in blocks, their new order, and the result's axes. */
const depthToSpace = (layout: Layout, [n, ...rest]: readonly number[], b: number, byRows: boolean): Blocks => {
  const [h, w, c] = layout === 'nhwc' ? rest : [...rest.slice(1), rest[0]];
  const depth = c / b / b;
  const parts = byRows ? [b, b, depth] : [depth, b, b];
  if (layout === 'nhwc') {
    const permutation = byRows ? [0, 1, 3, 2, 4, 5] : [0, 1, 4, 2, 5, 3];
    return { parts: [n, h, w, ...parts], permutation, shape: [n, h * b, w * b, depth] };
  }
  const permutation = byRows ? [0, 3, 4, 1, 5, 2] : [0, 1, 4, 2, 5, 3];
  return { parts: [n, ...parts, h, w], permutation, shape: [n, depth, h * b, w * b] };
};

const spaceToDepth = (layout: Layout, [n, ...rest]: readonly number[], b: number, byRows: boolean): Blocks => {
  if (layout === 'nhwc') {
    const [h, w, c] = rest;
    const permutation = byRows ? [0, 1, 3, 2, 4, 5] : [0, 1, 3, 5, 2, 4];
    return { parts: [n, h / b, b, w / b, b, c], permutation, shape: [n, h / b, w / b, c * b * b] };
  }
  const [c, h, w] = rest;
  const permutation = byRows ? [0, 3, 5, 1, 2, 4] : [0, 1, 3, 5, 2, 4];
  return { parts: [n, c, h / b, b, w / b, b], permutation, shape: [n, c * b * b, h / b, w / b] };
};

const blocks =
  (of: typeof depthToSpace, layout: Layout) =>
  ({ inputs, attributes }: Call): Emit => {
    const byRows = attributes.text('mode', 'DCR') === 'DCR';
    const { parts, permutation, shape } = of(layout, inputs[0]!.dims, attributes.integer('blocksize', 1), byRows);
    return (f, [x]) => f.reshape(f.plain('transpose', f.reshape(x, parts), { permutation }), shape);
  };

export default [
  ...Object.entries({ Reshape: asked, Flatten: flattened, Squeeze: squeezed, Unsqueeze: unsqueezed }).map(
    ([op, shapeOf]): MlOperator => ({ op, types: [ANY], requires: axesUpTo(8, 0), emit: view(shapeOf) }),
  ),
  { op: 'Transpose', types: [MOVED], requires: axesUpTo(6, 0), emit: transpose },
  { op: 'Expand', types: [ANY], requires: axesUpTo(8, 0), emit: expand },
  {
    op: 'Tile',
    types: [['float32', 'float16', 'int32', 'int64', 'uint8', 'bool']],
    requires: axesUpTo(8, 0),
    emit: tile,
  },
  { op: 'Trilu', types: [ANY], requires: axesUpTo(6, 0), emit: trilu },
  ...Object.entries({ DepthToSpace: depthToSpace, SpaceToDepth: spaceToDepth }).flatMap(([op, of]): MlOperator[] => [
    { op, types: [MOVED], emit: blocks(of, 'nchw') },
    { op, domain: NHWC_DOMAIN, types: [MOVED], emit: blocks(of, 'nhwc') },
  ]),
] satisfies MlOperator[];
