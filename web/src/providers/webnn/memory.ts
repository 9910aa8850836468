// The memory of a WebNN context. Tensors there have types and shapes, and no addresses: a block stands for a piece of
// memory, and knows which tensor has what was last written to a place of it. What came from the heap is in its bytes
// until a graph wants it.
import type { Memory, Placement } from '../../device/memory';
import type { MlTensor } from './ml';

export class Block implements Memory {
  private memory: Uint8Array | undefined;
  private readonly tensors = new Map<number, MlTensor>();

  constructor(
    readonly size: number,
    private readonly giveBack: (tensor: MlTensor) => void,
  ) {}

  /** Made when it is first needed: outputs of graphs need none. */
  bytes(offset: number, count: number): Uint8Array {
    this.memory ??= new Uint8Array(this.size);
    return this.memory.subarray(offset, offset + count);
  }

  /** The tensor that has what is at this place; undefined: the bytes have it. */
  tensor(offset: number): MlTensor | undefined {
    return this.tensors.get(offset);
  }

  write(offset: number, bytes: Uint8Array): void {
    this.tensors.delete(offset);
    this.bytes(offset, bytes.byteLength).set(bytes);
  }

  /** What is at this place is in a tensor from now on; `own`: it goes with this block. */
  hold(offset: number, tensor: MlTensor, own = false): void {
    this.tensors.set(offset, tensor);
    if (own) this.own = tensor;
  }

  private own: MlTensor | undefined;

  destroy(): void {
    if (this.own) this.giveBack(this.own);
    this.own = undefined;
    this.tensors.clear();
    this.memory = undefined;
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
