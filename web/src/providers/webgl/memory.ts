// The memory of a WebGL context. A block stands for a piece of memory with addresses; what was last written to a place
// of it is in a texture, or, if it came from the heap, in pieces of bytes until a texture is wanted.
import type { Memory, Placement } from '../../device/memory';
import { roundUp } from '../../device/memory_plan';
import { Pieces } from './pieces';
import { TEXEL, type Texture, type Textures } from './textures';

interface Holder {
  readonly texture: Texture;
  readonly bytes: number;
}

export class Block implements Memory {
  private readonly pieces = new Pieces();
  private readonly holders = new Map<number, Holder>();
  readonly size: number;

  /** @param lasting The bytes of the one tensor in this block; a write to a part of them leaves the rest unchanged. */
  constructor(
    bytes: number,
    private readonly textures: Textures,
    private readonly lasting = 0,
  ) {
    this.size = roundUp(bytes, TEXEL);
  }

  /** Bytes at a place, if no texture has them; there may be fewer, and zeros follow. */
  bytes(offset: number, count: number): Uint8Array {
    return this.pieces.at(offset, count);
  }

  write(offset: number, bytes: Uint8Array): void {
    this.drop(offset, bytes.byteLength);
    this.pieces.put(offset, bytes);
  }

  /** True if the tensor continues behind these bytes. */
  continues(offset: number, bytes: number): boolean {
    return offset + bytes < this.lasting;
  }

  /** The bytes at a place, wherever they are. The thread waits for the GPU. */
  download(offset: number, count: number): Uint8Array {
    const texture = this.held(offset, count);
    return texture ? this.textures.bytesOf(texture, count) : this.bytes(offset, count).slice();
  }

  /** The texture that has the `bytes` at this place. */
  texture(offset: number, bytes: number): Texture {
    const found = this.held(offset, bytes);
    if (found) return found;
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

  /** The texture that has these bytes; undefined: `bytes` returns them. */
  held(offset: number, bytes: number): Texture | undefined {
    const found = this.holders.get(offset);
    if (found && found.bytes >= bytes) return found.texture;
    if (this.lasting > 0) this.drop(offset, bytes, true);
    return undefined;
  }

  private hold(offset: number, texture: Texture, bytes: number): void {
    const before = this.holders.get(offset);
    if (before) this.textures.give(before.texture);
    this.holders.set(offset, { texture, bytes: roundUp(bytes, TEXEL) });
  }

  /**
   * Takes the textures at a place away. Of those that a tensor still needs, the bytes become pieces; `all`: of each.
   */
  private drop(offset: number, bytes: number, all = false): void {
    for (const [at, { texture, bytes: held }] of this.holders) {
      if (at >= offset + bytes || offset >= at + held) continue;
      const end = Math.min(at + held, this.lasting);
      if (at < end && (all || at < offset || end > offset + bytes))
        this.pieces.put(at, this.textures.bytesOf(texture, end - at));
      this.holders.delete(at);
      this.textures.give(texture);
    }
  }

  destroy(): void {
    this.drop(0, this.size);
    this.pieces.cut(0, this.size);
  }
}

export const blockAt = (place: Placement) => place as Placement<Block>;
