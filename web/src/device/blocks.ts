// Blocks of bytes copied between tensors: rows that Loop and Scan read from a tensor, or write into one.
import type { CopyCommand } from './commands';

/** In bytes: the start of the first block in a tensor, and the distance between blocks. */
export interface BlocksAt {
  readonly id: number;
  readonly offset: number;
  readonly step: number;
}

/** `count` blocks of `size` bytes, neither of them 0. */
export interface Blocks {
  readonly size: number;
  readonly count: number;
  readonly source: BlocksAt;
  readonly target: BlocksAt;
}

export function sameBlocks(a: Blocks, b: Blocks): boolean {
  const same = (x: BlocksAt, y: BlocksAt) => x.id === y.id && x.offset === y.offset && x.step === y.step;
  return a.size === b.size && a.count === b.count && same(a.source, b.source) && same(a.target, b.target);
}

/** The same as copies one by one. */
export function copiesOf({ size, count, source, target }: Blocks): CopyCommand[] {
  const part = ({ id, offset, step }: Blocks['source'], i: number) => ({ id, offset: offset + i * step, bytes: size });
  return Array.from({ length: count }, (_, i) => ({ kind: 'copy', source: part(source, i), target: part(target, i) }));
}
