// What picks and puts elements by index. TFLite picks rows by any index, and other things by constant ones only or
// never: places are counted in int32 as of one long row.
import type { DTypeName } from '../../../contract/kernel';
import { sizeOf, stridesOf } from '../../../contract/shape';
import type { MlBuilder, MlOperand } from '../ml';
import type { Call, Emit, MlOperator } from '../operator';
import { axisOf, cast, constant, part, put, reshaped } from './shared/nodes';
import { MOVED } from './shared/types';

function gather({ inputs, attributes }: Call): Emit {
  const axis = axisOf(attributes.integer('axis', 0), inputs[0]!.dims);
  const { dims } = inputs[0]!;
  return (builder, [x, indices]) => {
    // Indices of five axes end the browser's own process.
    const flat = indices.shape.length > 4 ? reshaped(builder, indices, [sizeOf(indices.shape)]) : indices;
    const y = put(builder, 'gather', x, flat, { axis });
    return reshaped(builder, y, [...dims.slice(0, axis), ...indices.shape, ...dims.slice(axis + 1)]);
  };
}

/** Indices of int32 from 0: those below count from the end. */
function fromStart(builder: MlBuilder, indices: MlOperand, sizes: readonly number[]): MlOperand {
  const whole = cast(builder, indices, 'int32');
  const moved = put(builder, 'add', whole, constant(builder, sizes));
  return put(builder, 'where', put(builder, 'lesser', whole, constant(builder, [0])), moved, whole);
}

/** Where the elements lie that indices along an axis mean. */
function placesOf(builder: MlBuilder, indices: MlOperand, dims: readonly number[], axis: number): MlOperand {
  const strides = stridesOf(dims);
  const others = indices.shape.reduce<number[]>(
    (starts, size, i) =>
      starts.flatMap((start) =>
        Array.from({ length: size }, (_, at) => (i === axis ? start : start + at * strides[i])),
      ),
    [0],
  );
  const row = fromStart(builder, put(builder, 'reshape', indices, [others.length]), [dims[axis]]);
  return put(builder, 'add', put(builder, 'mul', row, constant(builder, [strides[axis]])), constant(builder, others));
}

function gatherElements({ inputs, attributes }: Call): Emit {
  const { dims, size } = inputs[0]!;
  const axis = axisOf(attributes.integer('axis', 0), dims);
  return (builder, [x, indices]) => {
    const row = put(builder, 'reshape', x, [size]);
    const y = put(builder, 'gather', row, placesOf(builder, indices, dims, axis), { axis: 0 });
    return put(builder, 'reshape', y, indices.shape);
  };
}

function gatherND({ inputs, attributes }: Call): Emit {
  const [{ dims }, { dims: places }] = [inputs[0]!, inputs[1]!];
  const batch = attributes.integer('batch_dims', 0);
  const count = places[places.length - 1];
  const [found, kept] = [dims.slice(0, batch + count), dims.slice(batch + count)];
  const strides = stridesOf(found);
  const rows = sizeOf(places.slice(0, -1));
  const each = rows / sizeOf(dims.slice(0, batch));
  const starts = Array.from({ length: rows }, (_, i) => Math.floor(i / each) * sizeOf(found.slice(batch)));
  return (builder, [x, indices]) => {
    const flat = fromStart(builder, put(builder, 'reshape', indices, [rows, count]), found.slice(batch));
    const steps = put(builder, 'mul', flat, constant(builder, strides.slice(batch)));
    const sum = put(builder, 'reduceSum', steps, { axes: [1] });
    const at = put(builder, 'add', sum, constant(builder, starts));
    const y = put(builder, 'gather', put(builder, 'reshape', x, [sizeOf(found), ...kept]), at, { axis: 0 });
    return put(builder, 'reshape', y, [...places.slice(0, -1), ...kept]);
  };
}

/** Without bytes, which WebNN does not scatter. */
function scattered(builder: MlBuilder, x: MlOperand, indices: MlOperand, updates: MlOperand): MlOperand {
  if (x.dataType !== 'uint8') return put(builder, 'scatterND', x, indices, updates);
  const [wide, added] = [x, updates].map((one) => cast(builder, one, 'int32'));
  return cast(builder, put(builder, 'scatterND', wide, indices, added), 'uint8');
}

const scatterND =
  (): Emit =>
  (builder, [x, indices, updates]) =>
    scattered(builder, x, fromStart(builder, indices, x.shape.slice(0, indices.shape.at(-1))), updates);

function scatterElements({ inputs, attributes }: Call): Emit {
  const { dims, size } = inputs[0]!;
  const axis = axisOf(attributes.integer('axis', 0), dims);
  const { size: count } = inputs[1]!;
  return (builder, [x, indices, updates]) => {
    const row = put(builder, 'reshape', x, [size]);
    const places = put(builder, 'reshape', placesOf(builder, indices, dims, axis), [count, 1]);
    const y = scattered(builder, row, places, put(builder, 'reshape', updates, [count]));
    return put(builder, 'reshape', y, dims);
  };
}

/** Rows of a cache, from a place of each batch on; in a ring, or up to its end. */
function tensorScatter({ inputs, attributes }: Call): Emit {
  const [{ dims }, { dims: added }] = [inputs[0]!, inputs[1]!];
  const axis = axisOf(attributes.integer('axis', -2), dims);
  const [batch, outer, inner] = [dims[0], sizeOf(dims.slice(1, axis)), dims.slice(axis + 1)];
  const [rows, count] = [dims[axis], added[axis]];
  const range = (size: number, step = 1) => Array.from({ length: size }, (_, i) => i * step);
  return (builder, [x, updates, firsts]) => {
    const steps = constant(builder, range(count), [1, 1, count]);
    const first = firsts
      ? put(builder, 'reshape', cast(builder, firsts, 'int32'), [batch, 1, 1])
      : constant(builder, [0], [1, 1, 1]);
    const at = put(builder, 'add', first, steps);
    const around = put(builder, 'sub', at, constant(builder, [rows]));
    const row = put(builder, 'where', put(builder, 'lesser', at, constant(builder, [rows])), at, around);
    const starts = constant(builder, range(batch * outer, rows), [batch, outer, 1]);
    const places = put(builder, 'reshape', put(builder, 'add', row, starts), [batch * outer * count, 1]);
    const flat = (one: MlOperand, size: number) => put(builder, 'reshape', one, [batch * outer * size, ...inner]);
    return put(builder, 'reshape', scattered(builder, flat(x, rows), places, flat(updates, count)), dims);
  };
}

function oneHot({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const depth = data(1)![0];
  const axis = axisOf(attributes.integer('axis', -1), [...dims, depth]);
  const [outer, inner] = [sizeOf(dims.slice(0, axis)), sizeOf(dims.slice(axis))];
  const range = Array.from({ length: depth }, (_, i) => i);
  return (builder, [indices, , values]) => {
    const row = fromStart(builder, put(builder, 'reshape', indices, [outer, 1, inner]), [depth]);
    const hot = put(builder, 'equal', row, constant(builder, range, [1, depth, 1]));
    const wide = values.dataType === 'uint8' ? cast(builder, values, 'int32') : values;
    const y = put(builder, 'where', hot, part(builder, wide, 0, 1, 1), part(builder, wide, 0, 0, 1));
    return put(builder, 'reshape', cast(builder, y, values.dataType), [
      ...dims.slice(0, axis),
      depth,
      ...dims.slice(axis),
    ]);
  };
}

const INDICES: readonly DTypeName[] = ['int32', 'int64'];
const ASSIGNED = [{ attribute: 'reduction', values: ['none'], otherwise: 'scattering that adds or compares' }];

export default [
  { op: 'Gather', types: [MOVED, INDICES], emit: gather },
  { op: 'GatherElements', types: [MOVED, INDICES], emit: gatherElements },
  { op: 'GatherND', types: [MOVED, INDICES], emit: gatherND },
  { op: 'ScatterElements', types: [MOVED, INDICES, MOVED], requires: ASSIGNED, emit: scatterElements },
  { op: 'ScatterND', types: [MOVED, INDICES, MOVED], requires: ASSIGNED, emit: scatterND },
  { op: 'TensorScatter', types: [MOVED, MOVED, INDICES], emit: tensorScatter },
  { op: 'OneHot', types: [['float32', ...INDICES], [], MOVED], emit: oneHot },
] satisfies MlOperator[];
