// Columns (along the last axis) of wider tensors: nodes read or write a part of a tensor, so that Split, Slice and
// Concat need no copies. Python selects the columns by attributes (docs/internals.md, section 2).
import type { Attributes } from '../../../../contract/attributes';
import { type Context, KernelError, type Tensor } from '../../../../contract/kernel';
import { Dialect } from '../../../../schema/dialect';

/** In rows of `pitch` elements, `count` columns from `first` on. */
export interface Columns {
  readonly first: number;
  readonly count: number;
  readonly pitch: number;
}

export interface ColumnAttributes {
  /** [first, count] of input 0, and of a residual; empty: all columns. */
  readonly x: readonly number[];
  readonly residual: readonly number[];
  /** [first, width] of output 0, which then is a tensor of that width; empty: all columns. */
  readonly y: readonly number[];
  /** The input that is the tensor to write into. Without it this node makes the tensor, and others write into it. */
  readonly into?: number;
}

export function readColumns(attributes: Attributes): ColumnAttributes {
  const into = attributes.integer(Dialect.INTO, -1);
  return {
    x: attributes.integers(Dialect.X_COLUMNS),
    residual: attributes.integers(Dialect.RESIDUAL_COLUMNS),
    y: attributes.integers(Dialect.Y_COLUMNS),
    ...(into >= 0 && { into }),
  };
}

/** All columns, unless `[first, count]` selects some. */
export function columnsOf(tensor: Tensor, [first, count]: readonly number[] = []): Columns {
  const pitch = tensor.dims[tensor.dims.length - 1];
  if (first + count > pitch) throw new KernelError(`columns ${first} to ${first + count} of [${tensor.dims}]`);
  return { first: first ?? 0, count: count ?? pitch, pitch };
}

/** Output 0 of shape `dims`, or the columns of the tensor that contains it. */
export function outputColumns(
  ctx: Context,
  dims: readonly number[],
  { y: [first, width], into }: ColumnAttributes,
): { y: Tensor; at: Columns } {
  const count = dims[dims.length - 1];
  if (width === undefined) return { y: ctx.output(0, dims), at: { first: 0, count, pitch: count } };
  const wide = [...dims.slice(0, -1), width];
  if (first + count > width) throw new KernelError(`${count} columns from ${first} on do not fit into [${wide}]`);
  if (into === undefined) return { y: ctx.output(0, wide), at: { first, count, pitch: width } };
  const y = ctx.input(into);
  if (y.dims.join() !== wide.join()) throw new KernelError(`[${dims}] cannot be columns of [${y.dims}]`);
  ctx.view(0, y, wide);
  return { y, at: { first, count, pitch: width } };
}
