// The memory of a WebNN context. Tensors there have types and shapes, and no addresses: a block stands for a piece of
// memory, and knows which tensor has what was last written to a place of it. What came from the heap is in its bytes
// until a graph wants it.
import type { Memory, Placement } from '../../device/memory';
import { hasForm, type MlDescriptor, type MlTensor } from './ml';

/** Who has a tensor. It may be given away, and another one takes its place. */
export interface Holder {
  tensor: MlTensor | undefined;
}

/** What blocks do with tensors: the device's. */
export interface Tensors {
  giveBack(tensor: MlTensor): void;
  put(tensor: MlTensor, bytes: Uint8Array, lentAs?: string): void;
}

export class Block implements Memory {
  /** For errors: the feed or output as which the page last lent its tensor. */
  lentAs: string | undefined;
  private memory: Uint8Array | undefined;
  private readonly holders = new Map<number, Holder>();
  /** The page has the tensor: writes go into it, and it is never reused. */
  private shown: boolean;

  constructor(
    readonly size: number,
    private readonly tensors: Tensors,
    private own?: MlTensor,
  ) {
    this.shown = own !== undefined;
    if (own) this.hold(0, { tensor: own });
  }

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
    if (this.shown) {
      this.tensors.put(this.own!, bytes, this.lentAs);
      return;
    }
    this.holders.delete(offset);
    this.bytes(offset, bytes.byteLength).set(bytes);
  }

  hold(offset: number, holder: Holder): void {
    this.holders.set(offset, holder);
  }

  /** The tensor that a graph can write an output of this form into. */
  target(form: MlDescriptor): MlTensor | undefined {
    return this.own && hasForm(this.own, form) ? this.own : undefined;
  }

  /** Takes a tensor over, which has what is at this place from now on; false where the block has to keep its own. */
  take(offset: number, tensor: MlTensor): boolean {
    if (tensor !== this.own) {
      if (this.shown) return false;
      if (this.own) this.tensors.giveBack(this.own);
      this.own = tensor;
    }
    this.hold(offset, { tensor });
    return true;
  }

  /** The tensor, for the page. */
  show(): MlTensor | undefined {
    const tensor = this.holder(0) && this.own;
    this.shown ||= tensor !== undefined;
    this.lentAs ??= 'an output that a session left';
    return tensor;
  }

  destroy(): void {
    if (this.own && this.shown) this.own.destroy();
    else if (this.own) this.tensors.giveBack(this.own);
    this.own = undefined;
    this.shown = false;
    this.holders.clear();
    this.memory = undefined;
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
