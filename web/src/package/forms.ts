// Weights that lie in the file in another order than their plan wants them: the panels of eight columns of the CPU's
// kernels, made of matrices.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { Form } from './header';

const PANEL = 8;

/** Given a weight's bytes as they lie in the file, piece by piece, at multiples of four. */
export type Scatter = (offset: number, piece: Uint8Array) => void;

/**
 * Takes the bytes of a matrix and writes panels.
 *
 * @param from the matrix: its form, its size in bytes, and of slices how many.
 * @param dims of the weight as its plan has it: [groups, panels, rows, 8], or without groups.
 * @param target asked for the weight's memory at each piece: memory may move.
 */
export function scatterIntoPanels(
  { form, size, slices = 1 }: { readonly form: number; readonly size: number; readonly slices?: number },
  dims: readonly number[],
  target: () => Uint8Array,
): Scatter {
  const [groups, panels, rows, width] = [1, ...dims].slice(-4);
  const columns = size / 4 / groups / rows;
  const known = form === Form.matrix || form === Form.slices || (form === Form.transposed && groups === 1);
  const each = columns / slices;
  if (
    !known ||
    !Number.isInteger(each) ||
    width !== PANEL ||
    !Number.isInteger(columns) ||
    panels !== Math.ceil(columns / PANEL)
  ) {
    throw new RuntimeError(
      ErrorCode.invalid_graph,
      `a weight of shape [${dims}] cannot be made of ${size} bytes in form ${form}`,
    );
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
    // Runs of up to eight columns lie together on both sides.
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
