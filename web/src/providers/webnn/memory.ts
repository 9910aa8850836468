// The memory of a WebNN context. Tensors there have types and shapes, and no addresses. A block represents a piece of
// memory, and knows which tensor has the last written contents of a place. Contents from the heap stay in its bytes
// until a graph needs them.
import type { Memory, Placement } from '../../device/memory';
import { hasForm, type MlDescriptor, type MlTensor } from './ml';

/** The owner of a tensor. Its tensor may be given to another owner, and replaced. */
export interface Holder {
  tensor: MlTensor | undefined;
}

/** Functions of the device for blocks' tensors. */
export interface Tensors {
  giveBack(tensor: MlTensor): void;
  put(tensor: MlTensor, bytes: Uint8Array, lentAs?: string): void;
}

export class Block implements Memory {
  /** For errors: the name of the feed or output as which the page last lent its tensor. */
  lentAs: string | undefined;
  private memory: Uint8Array | undefined;
  private readonly holders = new Map<number, Holder>();
  /** True if the page has the tensor: writes go into it, and it is never reused. */
  private shown: boolean;

  constructor(
    readonly size: number,
    private readonly tensors: Tensors,
    private own?: MlTensor,
  ) {
    this.shown = own !== undefined;
    if (own) this.hold(0, { tensor: own });
  }

  /** Made on first use: outputs of graphs need none. */
  bytes(offset: number, count: number): Uint8Array {
    this.memory ??= new Uint8Array(this.size);
    return this.memory.subarray(offset, offset + count);
  }

  /** The owner of the contents of this place; undefined: the bytes have them. */
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

  /** The tensor into which a graph can write an output of this form. */
  target(form: MlDescriptor): MlTensor | undefined {
    return this.own && hasForm(this.own, form) ? this.own : undefined;
  }

  /** Takes a tensor with the contents of this place; false if the block must keep its own. */
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
