// Cuts messages into websocket frames, and joins frames (docs/internals.md, section 1). No sockets here.

/** The largest frame: 1 MiB is the fastest in all browsers. */
export const FRAME_SIZE = 1 << 20;
/** Parts below this size are copied together instead of becoming separate frames. */
const SMALL = 1 << 16;
const PREFIX = 16;
/** In the prefix of a message: its payload does not follow the header (0), but is at the URL that does. */
const ELSEWHERE = 1;

export function align16(size: number): number {
  return Math.ceil(size / 16) * 16;
}

/** The peer uses another protocol. */
export class ProtocolError extends Error {}

/** The frames of one message; each payload part starts at a multiple of 16. Large parts are not copied. */
export function* frames(header: Uint8Array, payload: readonly Uint8Array[]): Generator<Uint8Array> {
  const start = align16(PREFIX + header.byteLength);
  const total = payload.reduce((sum, part) => sum + align16(part.byteLength), start);
  const prefix = new Uint8Array(start);
  const view = new DataView(prefix.buffer);
  view.setBigUint64(0, BigInt(total), true);
  view.setUint32(8, header.byteLength, true);
  prefix.set(header, PREFIX);
  let gathered: Uint8Array[] = [prefix];
  let size = start;
  for (const part of payload) {
    const padding = new Uint8Array(align16(part.byteLength) - part.byteLength);
    if (part.byteLength < SMALL) {
      gathered.push(part, padding);
      size += align16(part.byteLength);
      if (size < FRAME_SIZE - SMALL) continue;
      yield* slices(join(gathered, size));
      gathered = [];
    } else {
      if (size > 0) yield* slices(join(gathered, size));
      yield* slices(part);
      gathered = [padding];
    }
    size = gathered.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }
  if (size > 0) yield* slices(join(gathered, size));
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += FRAME_SIZE) yield bytes.subarray(at, at + FRAME_SIZE);
}

function join(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

export interface Assembled {
  readonly header: Uint8Array;
  /**
   * 16-byte aligned; its memory belongs to this message only. If a message's payload is elsewhere: the URL to fetch.
   */
  readonly payload: Uint8Array;
  readonly elsewhere: boolean;
}

/** Joins frames. */
export class Assembler {
  private message: Uint8Array | undefined;
  private headerSize = 0;
  private elsewhere = false;
  private filled = 0;

  /** Takes the next frame; a message if it completes one. */
  receive(frame: Uint8Array): Assembled | undefined {
    const message = (this.message ??= this.begin(frame));
    if (this.filled + frame.byteLength > message.byteLength) {
      throw new ProtocolError(`a frame of ${frame.byteLength} bytes ends beyond its message of ${message.byteLength}`);
    }
    message.set(frame, this.filled);
    this.filled += frame.byteLength;
    if (this.filled < message.byteLength) return undefined;
    this.message = undefined;
    const end = PREFIX + this.headerSize;
    return {
      header: message.subarray(PREFIX, end),
      payload: message.subarray(align16(end)),
      elsewhere: this.elsewhere,
    };
  }

  private begin(frame: Uint8Array): Uint8Array {
    if (frame.byteLength < PREFIX)
      throw new ProtocolError(`a message begins with a frame of ${frame.byteLength} bytes`);
    const view = new DataView(frame.buffer, frame.byteOffset, PREFIX);
    const total = Number(view.getBigUint64(0, true));
    this.headerSize = view.getUint32(8, true);
    const place = view.getUint32(12, true);
    this.elsewhere = place === ELSEWHERE;
    if (place > ELSEWHERE || this.headerSize < 8 || align16(PREFIX + this.headerSize) > total) {
      throw new ProtocolError(`a message of ${total} bytes with a header of ${this.headerSize} is not possible`);
    }
    this.filled = 0;
    return new Uint8Array(total);
  }
}
