// Memory for runs' outputs, reused after they were sent: page faults of new memory cost more than all copying.

/** Smaller outputs use new memory. */
const LARGE = 1 << 20;
const [KEPT, KEPT_BYTES] = [4, 256 << 20];

export class OutputMemory {
  private idle: ArrayBuffer[] = [];

  /** The memory of one run: `copy` allocates, `giveBack` ends its use. */
  borrow(): { copy: (bytes: Uint8Array) => Uint8Array; giveBack: () => void } {
    const lent: ArrayBuffer[] = [];
    return {
      copy: (bytes) => {
        if (bytes.byteLength < LARGE) return bytes.slice();
        const memory = this.take(bytes.byteLength);
        lent.push(memory);
        const copied = new Uint8Array(memory, 0, bytes.byteLength);
        copied.set(bytes);
        return copied;
      },
      giveBack: () => {
        let room = KEPT_BYTES;
        this.idle = [...lent.splice(0), ...this.idle]
          .slice(0, KEPT)
          .filter(({ byteLength }) => (room -= byteLength) >= 0);
      },
    };
  }

  private take(size: number): ArrayBuffer {
    const found = this.idle.findIndex(({ byteLength }) => byteLength >= size && byteLength <= 2 * size);
    return found < 0 ? new ArrayBuffer(size) : this.idle.splice(found, 1)[0]!;
  }
}
