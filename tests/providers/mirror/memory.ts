// The mirror's memory.
import type { Memory, Placement } from '../../../web/src/device/memory';

export class Block implements Memory {
  readonly bytes: Uint8Array;

  constructor(readonly size: number) {
    this.bytes = new Uint8Array(size);
  }

  destroy(): void {}
}

/** The bytes at a place. */
export const at = ({ buffer, offset }: Placement, bytes: number) =>
  (buffer as Block).bytes.subarray(offset, offset + bytes);
