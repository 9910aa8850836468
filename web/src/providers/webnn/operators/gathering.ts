// Operators that gather and scatter elements by index. TFLite gathers rows by any index, and elements only by constant
// indices: places are therefore counted in int32, as in one long row.
import { sizeOf, stridesOf, normalizeAxis } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import type { Call, Emit, MlOperator } from '../operator';
import { range } from './shared/calls';
import { INDICES, MOVED } from './shared/types';

function gather({ inputs, attributes }: Call): Emit {
  const axis = normalizeAxis(attributes.integer('axis', 0), inputs[0]!.dims.length);
  const { dims } = inputs[0]!;
  return (f, [x, indices]) => {
    // Indices of five axes crash the browser's own process.
    const flat = indices.shape.length > 4 ? f.reshape(indices, [sizeOf(indices.shape)]) : indices;
    const y = f.plain('gather', x, flat, { axis });
    return f.reshape(y, [...dims.slice(0, axis), ...indices.shape, ...dims.slice(axis + 1)]);
  };
}

/** Indices as int32 from 0: negative ones count from the end. */
function fromStart(f: Formula, indices: MlOperand, sizes: readonly number[]): MlOperand {
  const whole = f.cast(indices, 'int32');
  const moved = f.plain('add', whole, f.constant(sizes));
  return f.plain('where', f.plain('lesser', whole, f.constant([0])), moved, whole);
}

/** The places of the elements selected by indices along an axis. */
function placesOf(f: Formula, indices: MlOperand, dims: readonly number[], axis: number): MlOperand {
  const strides = stridesOf(dims);
  const others = indices.shape.reduce<number[]>(
    (starts, size, i) =>
      starts.flatMap((start) => range(size).map((at) => (i === axis ? start : start + at * strides[i]))),
    [0],
  );
  const row = fromStart(f, f.plain('reshape', indices, [others.length]), [dims[axis]]);
  return f.plain('add', f.plain('mul', row, f.constant([strides[axis]])), f.constant(others));
}

function gatherElements({ inputs, attributes }: Call): Emit {
  const { dims, size } = inputs[0]!;
  const axis = normalizeAxis(attributes.integer('axis', 0), dims.length);
  return (f, [x, indices]) => {
    const row = f.plain('reshape', x, [size]);
    const y = f.plain('gather', row, placesOf(f, indices, dims, axis), { axis: 0 });
    return f.plain('reshape', y, indices.shape);
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
  return (f, [x, indices]) => {
    const flat = fromStart(f, f.plain('reshape', indices, [rows, count]), found.slice(batch));
    const steps = f.plain('mul', flat, f.constant(strides.slice(batch)));
    const sum = f.plain('reduceSum', steps, { axes: [1] });
    const at = f.plain('add', sum, f.constant(starts));
    const y = f.plain('gather', f.plain('reshape', x, [sizeOf(found), ...kept]), at, { axis: 0 });
    return f.plain('reshape', y, [...places.slice(0, -1), ...kept]);
  };
}

/** Without bytes, which WebNN cannot scatter. */
function scattered(f: Formula, x: MlOperand, indices: MlOperand, updates: MlOperand): MlOperand {
  if (x.dataType !== 'uint8') return f.plain('scatterND', x, indices, updates);
  const [wide, added] = [x, updates].map((one) => f.cast(one, 'int32'));
  return f.cast(f.plain('scatterND', wide, indices, added), 'uint8');
}

const scatterND =
  (): Emit =>
  (f, [x, indices, updates]) =>
    scattered(f, x, fromStart(f, indices, x.shape.slice(0, indices.shape.at(-1))), updates);

function scatterElements({ inputs, attributes }: Call): Emit {
  const { dims, size } = inputs[0]!;
  const axis = normalizeAxis(attributes.integer('axis', 0), dims.length);
  const { size: count } = inputs[1]!;
  return (f, [x, indices, updates]) => {
    const row = f.plain('reshape', x, [size]);
    const places = f.plain('reshape', placesOf(f, indices, dims, axis), [count, 1]);
    const y = scattered(f, row, places, f.plain('reshape', updates, [count]));
    return f.plain('reshape', y, dims);
  };
}

/** Rows of a cache, from a place for each batch on; in a ring, or up to its end. */
function tensorScatter({ inputs, attributes }: Call): Emit {
  const [{ dims }, { dims: added }] = [inputs[0]!, inputs[1]!];
  const axis = normalizeAxis(attributes.integer('axis', -2), dims.length);
  const [batch, outer, inner] = [dims[0], sizeOf(dims.slice(1, axis)), dims.slice(axis + 1)];
  const [rows, count] = [dims[axis], added[axis]];
  return (f, [x, updates, firsts]) => {
    const steps = f.constant(range(count), [1, 1, count]);
    const first = firsts ? f.plain('reshape', f.cast(firsts, 'int32'), [batch, 1, 1]) : f.constant([0], [1, 1, 1]);
    const at = f.plain('add', first, steps);
    const around = f.plain('sub', at, f.constant([rows]));
    const row = f.plain('where', f.plain('lesser', at, f.constant([rows])), at, around);
    const starts = f.constant(range(batch * outer, 0, rows), [batch, outer, 1]);
    const places = f.plain('reshape', f.plain('add', row, starts), [batch * outer * count, 1]);
    const flat = (one: MlOperand, size: number) => f.plain('reshape', one, [batch * outer * size, ...inner]);
    return f.plain('reshape', scattered(f, flat(x, rows), places, flat(updates, count)), dims);
  };
}

function oneHot({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const depth = data(1)![0];
  const axis = normalizeAxis(attributes.integer('axis', -1), [...dims, depth].length);
  const [outer, inner] = [sizeOf(dims.slice(0, axis)), sizeOf(dims.slice(axis))];
  return (f, [indices, , values]) => {
    const row = fromStart(f, f.plain('reshape', indices, [outer, 1, inner]), [depth]);
    const hot = f.plain('equal', row, f.constant(range(depth), [1, depth, 1]));
    const wide = values.dataType === 'uint8' ? f.cast(values, 'int32') : values;
    const y = f.plain('where', hot, f.part(wide, 0, 1, 1), f.part(wide, 0, 0, 1));
    return f.plain('reshape', f.cast(y, values.dataType), [...dims.slice(0, axis), depth, ...dims.slice(axis)]);
  };
}
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
