// The memory of a WebGL context. A block stands for a piece of memory with addresses; what was last written to a place
// of it is in a texture, or, if it came from the heap, in the block's bytes until a texture is wanted.
import type { Memory, Placement } from '../../device/memory';
import type { Texture, Textures } from './textures';

interface Holder {
  readonly texture: Texture;
  readonly bytes: number;
}

export class Block implements Memory {
  private memory: Uint8Array | undefined;
  private readonly holders = new Map<number, Holder>();

  constructor(
    readonly size: number,
    private readonly textures: Textures,
  ) {}

  /** Made when it is first needed. */
  bytes(offset: number, count: number): Uint8Array {
    this.memory ??= new Uint8Array(this.size);
    return this.memory.subarray(offset, offset + count);
  }

  write(offset: number, bytes: Uint8Array): void {
    this.drop(offset, bytes.byteLength);
    this.bytes(offset, bytes.byteLength).set(bytes);
  }

  /** The texture that has the `bytes` at this place. */
  texture(offset: number, bytes: number): Texture {
    const found = this.holders.get(offset);
    if (found && found.bytes >= bytes) return found.texture;
    const texture = this.textures.take(bytes);
    this.textures.write(texture, this.bytes(offset, bytes));
    this.hold(offset, texture, bytes);
    return texture;
  }

  /** The texture that the `bytes` at this place are written to: what was there, in part or as a whole, is gone. */
  target(offset: number, bytes: number): Texture {
    this.drop(offset, bytes);
    const texture = this.textures.take(bytes);
    this.hold(offset, texture, bytes);
    return texture;
  }

  /** The texture at this place, if it came from no heap. */
  held(offset: number): Texture | undefined {
    return this.holders.get(offset)?.texture;
  }

  private hold(offset: number, texture: Texture, bytes: number): void {
    const before = this.holders.get(offset);
    if (before) this.textures.give(before.texture);
    this.holders.set(offset, { texture, bytes });
  }

  private drop(offset: number, bytes: number): void {
    for (const [at, holder] of this.holders)
      if (at < offset + bytes && offset < at + holder.bytes) {
        this.holders.delete(at);
        this.textures.give(holder.texture);
      }
  }

  destroy(): void {
    this.drop(0, Infinity);
    this.memory = undefined;
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
