// A decoder's result: rows of pixels, from the top down.
import { ErrorCode } from '../schema';
import { invalid, RuntimeError } from '../errors';

export interface Picture {
  readonly height: number;
  readonly width: number;
  /** Samples of a pixel in `pixels`: 1 is gray, 2 gray and alpha, 3 RGB, 4 RGBA. */
  readonly channels: number;
  readonly pixels: Uint8Array;
}

/** The largest size: a few bytes can claim to be a picture of any size. */
const MOST = 1 << 28;

/** The bytes are not a picture, or a damaged one. */
export const damaged = (format: string, why: string) =>
  invalid(`these bytes are no ${format} picture, or a damaged one: ${why}`);

/** Another decoder may be able to read them. */
export const unknown = (format: string, what: string) =>
  new RuntimeError(
    ErrorCode.not_implemented,
    `${format} pictures${what} cannot be decoded here: decode them before the run, or save them as PNG`,
  );

/** Refuses impossible sizes. */
export function checkedSize(format: string, width: number, height: number): void {
  if (!(width > 0 && height > 0)) throw damaged(format, `it is ${width} x ${height} pixels large`);
  if (width * height > MOST)
    throw new RuntimeError(
      ErrorCode.out_of_memory,
      `a ${format} picture of ${width} x ${height} pixels is too large: ${MOST} pixels is the most`,
    );
}

/** Reads numbers of a file; throws past its end. */
export class Reader {
  private readonly view: DataView;
  at = 0;

  constructor(
    readonly format: string,
    readonly bytes: Uint8Array,
    readonly little: boolean,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  private step(size: number): number {
    const { at } = this;
    if (!(size >= 0 && at >= 0 && at + size <= this.bytes.length)) throw damaged(this.format, 'it ends too early');
    this.at += size;
    return at;
  }
  u8 = () => this.view.getUint8(this.step(1));
  u16 = () => this.view.getUint16(this.step(2), this.little);
  u32 = () => this.view.getUint32(this.step(4), this.little);
  i32 = () => this.view.getInt32(this.step(4), this.little);
  take(size: number): Uint8Array {
    const at = this.step(size);
    return this.bytes.subarray(at, at + size);
  }
}
