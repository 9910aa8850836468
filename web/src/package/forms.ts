// Weights whose order in the file differs from their plan's: the panels of eight columns of the CPU's kernels, made
// from matrices.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { Form } from './header';

const PANEL = 8;
const FOUR = 4;

/** A weight in the file. */
interface Placed {
  readonly form: number;
  readonly size: number;
  readonly parameters?: readonly number[];
}

/** A weight of the plan. */
interface Wanted {
  readonly size: number;
  readonly dims: readonly number[];
}

/** Receives a weight's bytes in the file's order, piece by piece, at multiples of four. */
export type Scatter = (offset: number, piece: Uint8Array) => void;

/**
 * Reads the bytes of a matrix and writes panels.
 *
 * @param from the matrix: its form, its size in bytes, and the form's parameters.
 * @param weight from its plan: its bytes, and its shape: [groups, panels, rows, 8], or without groups; for integers
 *   [groups, panels, fours of rows, 8, 4].
 * @param target returns the weight's memory, called for each piece: memory may move.
 */
export function scatterIntoPanels(from: Placed, weight: Wanted, target: () => Uint8Array): Scatter {
  const { form, size, parameters = [] } = from;
  if (form === Form.integers) return scatterIntegers(from, weight, target);
  const [groups, panels, rows, width] = [1, ...weight.dims].slice(-4);
  const slices = form === Form.slices ? parameters[0] : 1;
  const columns = size / 4 / groups / rows;
  const known = form === Form.matrix || form === Form.slices || (form === Form.transposed && groups === 1);
  const each = columns / slices;
  if (
    !known ||
    !Number.isInteger(each) ||
    width !== PANEL ||
    !Number.isInteger(columns) ||
    panels !== Math.ceil(columns / PANEL) ||
    weight.size !== groups * panels * rows * PANEL * Float32Array.BYTES_PER_ELEMENT
  ) {
    throw unfit(from, weight);
  }
  if (columns % PANEL !== 0) target().fill(0);
  const place = (row: number, group: number, column: number) =>
    ((group * panels + (column >> 3)) * rows + row) * PANEL + (column & 7);
  return (offset, piece) => {
    const values = new Float32Array(piece.buffer, piece.byteOffset, piece.byteLength / 4);
    const memory = target();
    const floats = new Float32Array(memory.buffer, memory.byteOffset, memory.byteLength / 4);
    let i = offset / 4;
    if (form === Form.transposed) {
      let [column, row] = [Math.floor(i / rows), i % rows];
      for (const value of values) {
        floats[place(row, 0, column)] = value;
        if (++row === rows) [row, column] = [0, column + 1];
      }
      return;
    }
    // Runs of up to eight columns are contiguous on both sides.
    const end = i + values.length;
    const first = i;
    while (i < end) {
      const within = i % each;
      const line = (i - within) / each;
      const slice = form === Form.slices ? Math.floor(line / (groups * rows)) : 0;
      const column = slice * each + within;
      const run = Math.min(PANEL - (column & 7), each - within, end - i);
      const to =
        form === Form.slices
          ? place(line % rows, Math.floor(line / rows) % groups, column)
          : place(Math.floor(line / groups), line % groups, column);
      for (let j = 0; j < run; j++) floats[to + j] = values[i - first + j];
      i += run;
    }
  };
}

function scatterIntegers(from: Placed, weight: Wanted, target: () => Uint8Array): Scatter {
  const [columns = 0, taps = 0, moved = 0] = from.parameters ?? [];
  const [groups, panels, fours, ...tile] = taps ? weight.dims : [1, ...weight.dims];
  const rows = from.size / (groups * columns);
  const channels = rows / (taps || 1);
  if (
    !Number.isInteger(channels) ||
    panels !== Math.ceil(columns / PANEL) ||
    fours !== Math.ceil(rows / FOUR) ||
    `${tile}` !== `${[PANEL, FOUR]}` ||
    weight.size !== groups * panels * fours * PANEL * FOUR
  ) {
    throw unfit(from, weight);
  }
  target().fill(0);
  const flip = moved ? 0x80 : 0;
  const length = taps || columns;
  const place = (row: number, column: number) =>
    (((Math.floor(column / columns) * panels + ((column % columns) >> 3)) * fours + (row >> 2)) * PANEL +
      ((column % columns) & 7)) *
      FOUR +
    (row & 3);
  return (offset, piece) => {
    const memory = target();
    for (let i = 0; i < piece.length; ) {
      // A line is a contiguous part: a matrix's row, or the taps of a channel.
      const line = Math.floor((offset + i) / length);
      const start = i - (offset + i - line * length);
      const end = Math.min(piece.length, start + length);
      for (; i < end; i++) {
        const to = taps
          ? place((i - start) * channels + (line % channels), Math.floor(line / channels))
          : place(line, i - start);
        memory[to] = piece[i] ^ flip;
      }
    }
  };
}

function unfit({ form, size }: Placed, { dims, size: wanted }: Wanted): RuntimeError {
  const text = `a weight of ${wanted} bytes and shape [${dims}] cannot be made of ${size} bytes in form ${form}`;
  return new RuntimeError(ErrorCode.invalid_graph, text);
}
