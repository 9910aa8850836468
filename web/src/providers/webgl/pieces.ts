// Bytes that came from the heap for places of a block, until a texture has them.

interface Piece {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export class Pieces {
  private pieces: Piece[] = [];

  /** Keeps a copy; what was there is gone. */
  put(offset: number, bytes: Uint8Array): void {
    this.cut(offset, bytes.byteLength);
    this.pieces.push({ offset, bytes: bytes.slice() });
  }

  /** The bytes of a place, zeros where nothing came. */
  at(offset: number, count: number): Uint8Array {
    const own = this.within(offset, count);
    if (own.length === 1 && own[0].offset === offset) return own[0].bytes.subarray(0, count);
    const all = new Uint8Array(count);
    for (const { offset: begin, bytes } of own) {
      const first = Math.max(begin, offset);
      all.set(bytes.subarray(first - begin, offset + count - begin), first - offset);
    }
    return all;
  }

  /** Forgets the bytes of a place. */
  cut(offset: number, count: number): void {
    const end = offset + count;
    const own = new Set(this.within(offset, count));
    if (own.size === 0) return;
    const rest = [...own].flatMap(({ offset: begin, bytes }) => [
      ...(begin < offset ? [{ offset: begin, bytes: bytes.subarray(0, offset - begin) }] : []),
      ...(begin + bytes.byteLength > end ? [{ offset: end, bytes: bytes.subarray(end - begin) }] : []),
    ]);
    this.pieces = [...this.pieces.filter((piece) => !own.has(piece)), ...rest];
  }

  private within(offset: number, count: number): Piece[] {
    return this.pieces.filter(
      (piece) => piece.offset < offset + count && offset < piece.offset + piece.bytes.byteLength,
    );
  }
}

/** A copy with zeros behind. */
export function padded(bytes: Uint8Array, count: number): Uint8Array {
  const whole = new Uint8Array(count);
  whole.set(bytes);
  return whole;
}
