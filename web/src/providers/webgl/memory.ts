// The memory of a WebGL context. A block stands for a piece of memory with addresses; what was last written to a place
// of it is in a texture, or, if it came from the heap, in pieces of bytes until a texture is wanted.
import type { Memory, Placement } from '../../device/memory';
import { Pieces } from './pieces';
import type { Texture, Textures } from './textures';

interface Holder {
  readonly texture: Texture;
  readonly bytes: number;
}

export class Block implements Memory {
  private readonly pieces = new Pieces();
  private readonly holders = new Map<number, Holder>();

  constructor(
    readonly size: number,
    private readonly textures: Textures,
  ) {}

  /** What is at a place, if no texture has it; it may have fewer bytes, and zeros follow. */
  bytes(offset: number, count: number): Uint8Array {
    return this.pieces.at(offset, count);
  }

  write(offset: number, bytes: Uint8Array): void {
    this.drop(offset, bytes.byteLength);
    this.pieces.put(offset, bytes);
  }

  /** The texture that has the `bytes` at this place. */
  texture(offset: number, bytes: number): Texture {
    const found = this.holders.get(offset);
    if (found && found.bytes >= bytes) return found.texture;
    const texture = this.textures.take(bytes);
    this.textures.write(texture, this.pieces.at(offset, bytes), bytes);
    this.pieces.cut(offset, bytes);
    this.hold(offset, texture, bytes);
    return texture;
  }

  /** The texture that the `bytes` at this place are written to: what was there, in part or as a whole, is gone. */
  target(offset: number, bytes: number): Texture {
    this.drop(offset, bytes);
    this.pieces.cut(offset, bytes);
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
    this.drop(0, this.size);
    this.pieces.cut(0, this.size);
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
