// A stream of bytes, read in pieces of the reader's choice.
import { messageOf } from '../errors';
import { pause } from '../turn';

const CHUNK = 1 << 20;
/** Unneeded bytes at the end of a stream that are read nevertheless. */
const LITTLE = 1 << 18;
/** Number of tries to open a stream again before the next byte arrives, and milliseconds to wait the first time. */
const TRIES = 4;
const FIRST_WAIT = 250;

/** Called if the stream ended early or broke off. */
export type BrokenOff = (how: string) => Promise<never>;

/** The way to continue a stream that broke off. */
export interface Resuming {
  /** Milliseconds without a byte after which a stream counts as broken off. */
  readonly patience: number;
  /** Ends the reading, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** True if the stream's length is unknown, so that its end may be where the connection broke off. */
  readonly mayBeCut?: boolean;
  /** The stream from byte `position` on; undefined: it is not available. */
  from(position: number): Promise<ReadableStream<Uint8Array> | undefined>;
}

interface Reader {
  readonly byob?: ReadableStreamBYOBReader;
  readonly plain?: ReadableStreamDefaultReader<Uint8Array>;
}

function readerOf(stream: ReadableStream<Uint8Array>): Reader {
  try {
    return { byob: stream.getReader({ mode: 'byob' }) };
  } catch {
    return { plain: stream.getReader() };
  }
}

export class ByteReader {
  /** Number of bytes read. */
  position = 0;
  private reader: Reader;
  /** Bytes that arrived and are not read yet, if the stream cannot fill our memory (WebKit). */
  private rest = new Uint8Array(0);
  private tries = 0;

  /** @param brokenOff throws the error for a stream that ends too early. */
  constructor(
    stream: ReadableStream<Uint8Array>,
    private readonly brokenOff: BrokenOff,
    private readonly resuming?: Resuming,
  ) {
    this.reader = readerOf(stream);
  }

  /** The next `size` bytes, in new memory, which grows as bytes arrive: a file's promised size may be wrong. */
  async read(size: number): Promise<Uint8Array<ArrayBuffer>> {
    let read = new Uint8Array(0);
    while (read.byteLength < size) {
      const [had, wanted] = [read, Math.min(size, Math.max(CHUNK, 2 * read.byteLength))];
      const memory = () => {
        const grown = new Uint8Array(wanted);
        grown.set(had);
        return grown.buffer;
      };
      read = await this.fill(memory, wanted, had.byteLength);
    }
    return read;
  }

  /**
   * Everything up to `end`, chunk by chunk; a chunk is valid until the callee returns. Chunks have lengths that are
   * multiples of 64, except the last one.
   */
  async each(end: number, take: (offset: number, bytes: Uint8Array) => void): Promise<void> {
    const most = Math.min(CHUNK, Math.max(end - this.position, 0));
    let kept: ArrayBuffer | undefined;
    const memory = () => {
      const once = kept ?? new ArrayBuffer(most);
      kept = undefined;
      return once;
    };
    while (this.position < end) {
      const [start, wanted] = [this.position, Math.min(CHUNK, end - this.position)];
      const bytes = await this.fill(memory, wanted, 0, end);
      take(start, bytes);
      kept = bytes.buffer;
    }
  }

  /** No more of it is needed. */
  cancel(): void {
    void (this.reader.byob ?? this.reader.plain)!.cancel().catch(() => undefined);
  }

  /** The same when `left` bytes are left: a few are read, because browsers list a cancelled download as failed. */
  finish(left: number): void {
    if (left > LITTLE) return this.cancel();
    this.filled(new ArrayBuffer(left + 1), left + 1, 0).then(
      () => this.cancel(),
      () => undefined,
    );
  }

  /**
   * @param memory has the first `from` bytes; it is called at each try.
   * @param end of the bytes that are read, for the error of a stream that ends before.
   */
  private async fill(
    memory: () => ArrayBuffer,
    size: number,
    from = 0,
    end?: number,
  ): Promise<Uint8Array<ArrayBuffer>> {
    for (;;) {
      let bytes: Uint8Array<ArrayBuffer>;
      try {
        bytes = await this.filled(memory(), size, from);
      } catch (error) {
        await this.resume(messageOf(error));
        continue;
      }
      const reached = this.position + bytes.byteLength - from;
      if (bytes.byteLength === size) {
        this.position = reached;
        this.tries = 0;
        return bytes;
      }
      const how = `it ended after ${reached}${end === undefined ? '' : ` of ${end}`} bytes`;
      if (!this.resuming?.mayBeCut) await this.brokenOff(how);
      await this.resume(how);
    }
  }

  private async resume(how: string): Promise<void> {
    this.cancel();
    this.rest = new Uint8Array(0);
    const signal = this.resuming?.signal;
    signal?.throwIfAborted();
    while (this.resuming && this.tries < TRIES) {
      await pause(FIRST_WAIT * 2 ** this.tries++, signal);
      const again = await this.resuming.from(this.position).catch(() => 'try again' as const);
      signal?.throwIfAborted();
      if (again === undefined) break;
      if (again === 'try again') continue;
      this.reader = readerOf(again);
      return;
    }
    await this.brokenOff(how);
  }

  private async filled(memory: ArrayBuffer, size: number, from: number): Promise<Uint8Array<ArrayBuffer>> {
    const { byob, plain } = this.reader;
    let filled = from;
    while (filled < size) {
      if (byob) {
        const { value, done } = await this.inTime(byob.read(new Uint8Array(memory, filled, size - filled)));
        if (value) [memory, filled] = [value.buffer, filled + value.byteLength];
        if (done) break;
        continue;
      }
      if (this.rest.byteLength === 0) {
        const { value, done } = await this.inTime(plain!.read());
        if (done) break;
        this.rest = value as Uint8Array<ArrayBuffer>;
      }
      const now = this.rest.subarray(0, size - filled);
      new Uint8Array(memory).set(now, filled);
      filled += now.byteLength;
      this.rest = this.rest.subarray(now.byteLength);
    }
    return new Uint8Array(memory, 0, filled);
  }

  private async inTime<T>(reading: Promise<T>): Promise<T> {
    const patience = this.resuming?.patience;
    if (patience === undefined) return reading;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing came for ${patience / 1000} s`)), patience);
    });
    return Promise.race([reading, late]).finally(() => clearTimeout(timer));
  }
}
