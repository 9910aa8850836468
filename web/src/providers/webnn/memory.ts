// The memory of a WebNN context. Tensors there have types and shapes, and no addresses: a block stands for a piece of
// memory, and knows which tensor has what was last written to a place of it. What came from the heap is in its bytes
// until a graph wants it.
import type { Memory, Placement } from '../../device/memory';
import type { MlTensor } from './ml';

/** Who has a tensor. It may be given away, and another one takes its place. */
export interface Holder {
  tensor: MlTensor | undefined;
}

export class Block implements Memory {
  private memory: Uint8Array | undefined;
  private readonly holders = new Map<number, Holder>();
  private own: MlTensor | undefined;

  constructor(
    readonly size: number,
    private readonly giveBack: (tensor: MlTensor) => void,
  ) {}

  /** Made when it is first needed: outputs of graphs need none. */
  bytes(offset: number, count: number): Uint8Array {
    this.memory ??= new Uint8Array(this.size);
    return this.memory.subarray(offset, offset + count);
  }

  /** Who has what is at this place; undefined: the bytes have it. */
  holder(offset: number): Holder | undefined {
    return this.holders.get(offset);
  }

  write(offset: number, bytes: Uint8Array): void {
    this.holders.delete(offset);
    this.bytes(offset, bytes.byteLength).set(bytes);
  }

  hold(offset: number, holder: Holder): void {
    this.holders.set(offset, holder);
  }

  /** Takes a tensor over: what is at this place is in it from now on. */
  take(offset: number, tensor: MlTensor): void {
    if (this.own) this.giveBack(this.own);
    this.own = tensor;
    this.hold(offset, { tensor });
  }

  destroy(): void {
    if (this.own) this.giveBack(this.own);
    this.own = undefined;
    this.holders.clear();
    this.memory = undefined;
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
