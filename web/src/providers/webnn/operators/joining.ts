// Operators that cut and join along axes.
import type { DTypeName } from '../../../contract/kernel';
import { normalizeAxes, normalizeAxis } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import type { Call, Emit, MlOperator } from '../operator';
import { axesUpTo, range } from './shared/calls';
import { MOVED } from './shared/types';

function concat({ inputs, attributes }: Call): Emit {
  const axis = normalizeAxis(attributes.integer('axis', 0), inputs[0]!.dims.length);
  return (f, x) => f.plain('concat', [...x], axis);
}

function split({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const axis = normalizeAxis(attributes.integer('axis', 0), dims.length);
  const count = attributes.integer('num_outputs', 1);
  const each = Math.ceil(dims[axis] / count);
  const sizes = data(1) ?? Array.from({ length: count }, (_, i) => Math.min(each, dims[axis] - i * each));
  return (f, [x]) => f.several('split', x, [...sizes], { axis });
}

const within = (place: number, least: number, most: number) => Math.min(Math.max(place, least), most);

/** TFLite slices up to five axes, forwards; otherwise the places are gathered. */
const SLICED = 5;

function slice({ inputs, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const [starts, ends, named, steps] = [1, 2, 3, 4].map(data);
  const axes = normalizeAxes(named ?? starts!.map((_, i) => i), dims.length);
  const cuts = axes.map((axis, i) => {
    const [size, step] = [dims[axis], steps?.[i] ?? 1];
    const [least, most] = step > 0 ? [0, size] : [-1, size - 1];
    const [start, end] = [starts![i], ends![i]].map((place, which) =>
      within(place < 0 ? place + size : place, which === 0 ? 0 : least, most),
    );
    return { axis, start, step, count: Math.max(Math.ceil((end - start) / step), 0) };
  });
  return (f, [x]) =>
    cuts.reduce((y, { axis, start, step, count }) => {
      if (step > 0 && dims.length <= SLICED) return f.part(y, axis, start, (count - 1) * step + 1, step);
      return f.picked(y, axis, range(count, start, step));
    }, x);
}

/** The source of an element outside an axis. */
const BESIDE: { readonly [mode: string]: (place: number, size: number) => number } = {
  edge: (place, size) => within(place, 0, size - 1),
  wrap: (place, size) => ((place % size) + size) % size,
  reflect: (place, size) => {
    const period = Math.max(2 * (size - 1), 1);
    const at = ((place % period) + period) % period;
    return at < size ? at : period - at;
  },
};

function pad({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const pads = data(1)!;
  const axes = data(3)?.map((axis) => normalizeAxis(axis, dims.length)) ?? dims.map((_, i) => i);
  const beside = BESIDE[attributes.text('mode', 'constant')];
  const padsOf = (end: 0 | 1) =>
    dims.map((_, axis) => (axes.includes(axis) ? pads[axes.indexOf(axis) + end * axes.length] : 0));
  const [before, after] = [padsOf(0), padsOf(1)];
  const cut = (counts: readonly number[]) => counts.map((count) => Math.max(-count, 0));
  const [first, last] = [cut(before), cut(after)];
  const added = (counts: readonly number[]) => counts.map((count) => Math.max(count, 0));
  const value = data(2)?.[0] ?? 0;
  return (f, [x, , computed]) => {
    const kept = dims.reduce((y, size, axis) => f.part(y, axis, first[axis], size - first[axis] - last[axis]), x);
    if (!beside && computed) return around(f, kept, added(before), added(after), computed);
    if (!beside) return f.padded(kept, added(before), added(after), value);
    return kept.shape.reduce((y, size, axis) => {
      const [begin, end] = [added(before)[axis], added(after)[axis]];
      if (begin + end === 0) return y;
      const places = Array.from({ length: begin + size + end }, (_, i) => beside(i - begin, size));
      return f.picked(y, axis, places);
    }, kept);
  };
}

/** With a value that is known only in a run. */
function around(
  f: Formula,
  x: MlOperand,
  before: readonly number[],
  after: readonly number[],
  value: MlOperand,
): MlOperand {
  const ones = f.plain('expand', f.constant([1], []), x.shape);
  const inside = f.cast(f.padded(ones, before, after), 'uint8');
  const type = x.dataType === 'uint8' ? 'int32' : x.dataType;
  const [all, other] = [f.padded(x, before, after), f.plain('reshape', value, [])];
  return f.cast(f.plain('where', inside, f.cast(all, type), f.cast(other, type)), x.dataType);
}

function centerCropPad({ inputs, attributes, data }: Call): Emit {
  const { dims } = inputs[0]!;
  const axes = normalizeAxes(attributes.integers('axes', [...dims.keys()]), dims.length);
  const more = dims.map((size, axis) => (axes.includes(axis) ? data(1)![axes.indexOf(axis)] - size : 0));
  const before = more.map((count) => Math.max(count, 0) >> 1);
  const after = more.map((count, axis) => Math.max(count, 0) - before[axis]);
  return (f, [x]) => {
    const less = more.map((count) => Math.max(-count, 0));
    const cut = less.reduce((y, count, axis) => f.part(y, axis, count >> 1, dims[axis] - count), x);
    return f.padded(cut, before, after);
  };
}

/** The rows of two axes, of which `time` is reversed up to a length. */
function reverseSequence({ inputs, attributes }: Call): Emit {
  const { dims } = inputs[0]!;
  const time = attributes.integer('time_axis', 0);
  const [times, batch] = [dims[time], dims[1 - time]];
  const shaped = (count: number, axis: number) => (axis === 0 ? [count, 1] : [1, count]);
  return (f, [x, lengths]) => {
    const at = f.constant(range(times), shaped(times, time));
    const lane = f.constant(range(batch), shaped(batch, 1 - time));
    const length = f.plain('reshape', f.cast(lengths, 'int32'), shaped(batch, 1 - time));
    const backwards = f.plain('sub', f.plain('sub', length, f.constant([1])), at);
    const from = f.plain('where', f.plain('lesser', at, length), backwards, at);
    const [row, column] = time === 0 ? [from, lane] : [lane, from];
    const places = f.plain('add', f.plain('mul', row, f.constant([dims[1]])), column);
    const rows = f.plain('reshape', x, [times * batch, ...dims.slice(2)]);
    const y = f.plain('gather', rows, f.plain('reshape', places, [times * batch]), { axis: 0 });
    return f.plain('reshape', y, dims);
  };
}

const PADDED: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int64', 'uint8', 'bool'];

const UP_TO_FIVE = axesUpTo(SLICED, 0);
/** TFLite's limit; its own description of limits claims more. */
const CONCATENATED = 6;

export default [
  { op: 'Concat', types: [[...MOVED, 'uint32']], requires: axesUpTo(CONCATENATED, 0), emit: concat },
  { op: 'Split', types: [MOVED], emit: split },
  { op: 'Slice', types: [MOVED], emit: slice },
  {
    op: 'Pad',
    types: [PADDED],
    requires: UP_TO_FIVE,
    emit: pad,
  },
  { op: 'CenterCropPad', types: [PADDED], requires: UP_TO_FIVE, emit: centerCropPad },
  { op: 'ReverseSequence', types: [MOVED, []], emit: reverseSequence },
] satisfies MlOperator[];
