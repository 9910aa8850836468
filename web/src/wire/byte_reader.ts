// A stream of bytes, read in pieces of the reader's own choice.
import { messageOf } from '../errors';

const CHUNK = 1 << 20;

/** The stream ended before all of it was read that should be there, or broke off. */
export type BrokenOff = (how: string) => Promise<never>;

export class ByteReader {
  /** How many bytes were read. */
  position = 0;
  private readonly byob: ReadableStreamBYOBReader | undefined;
  private readonly plain: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** What came and is not read yet, where the stream cannot fill memory of ours (WebKit). */
  private rest = new Uint8Array(0);

  /** @param brokenOff throws what is to be said of a stream that ends too early. */
  constructor(
    stream: ReadableStream<Uint8Array>,
    private readonly brokenOff: BrokenOff,
  ) {
    try {
      this.byob = stream.getReader({ mode: 'byob' });
    } catch {
      this.plain = stream.getReader();
    }
  }

  /** The next `size` bytes, in memory of their own, which grows with what comes: a file may promise too much. */
  async read(size: number): Promise<Uint8Array<ArrayBuffer>> {
    let read = new Uint8Array(0);
    while (read.byteLength < size) {
      const [had, wanted] = [read, Math.min(size, Math.max(CHUNK, 2 * read.byteLength))];
      const memory = new ArrayBuffer(wanted);
      new Uint8Array(memory).set(had);
      read = await this.fill(memory, wanted, had.byteLength);
      if (read.byteLength < wanted) await this.brokenOff(`it ended after ${this.position} bytes`);
    }
    return read;
  }

  /**
   * Everything up to `end`, chunk by chunk; a chunk is the callee's only until it returns. Chunks have lengths that are
   * multiples of 64, but for the last one.
   */
  async each(end: number, take: (offset: number, bytes: Uint8Array) => void): Promise<void> {
    let memory = new ArrayBuffer(Math.min(CHUNK, Math.max(end - this.position, 0)));
    while (this.position < end) {
      const [start, wanted] = [this.position, Math.min(CHUNK, end - this.position)];
      const bytes = await this.fill(memory, wanted);
      if (bytes.byteLength < wanted) await this.brokenOff(`it ended after ${this.position} of ${end} bytes`);
      take(start, bytes);
      memory = bytes.buffer;
    }
  }

  /** Nothing more of it is wanted. */
  cancel(): void {
    void (this.byob ?? this.plain)!.cancel().catch(() => undefined);
  }

  /** Fewer bytes only at the end of the stream. */
  private async fill(memory: ArrayBuffer, size: number, from = 0): Promise<Uint8Array<ArrayBuffer>> {
    let filled = from;
    try {
      while (filled < size) {
        if (this.byob) {
          const { value, done } = await this.byob.read(new Uint8Array(memory, filled, size - filled));
          if (value) [memory, filled] = [value.buffer, filled + value.byteLength];
          if (done) break;
          continue;
        }
        if (this.rest.byteLength === 0) {
          const { value, done } = await this.plain!.read();
          if (done) break;
          this.rest = value as Uint8Array<ArrayBuffer>;
        }
        const now = this.rest.subarray(0, size - filled);
        new Uint8Array(memory).set(now, filled);
        filled += now.byteLength;
        this.rest = this.rest.subarray(now.byteLength);
      }
    } catch (error) {
      await this.brokenOff(messageOf(error));
    }
    this.position += filled - from;
    return new Uint8Array(memory, 0, filled);
  }
}
