// A device in JavaScript's memory: it executes each command at once.
import { ElementForms } from '../../../web/src/contract/elements';
import { BufferTable } from '../../../web/src/device/buffers';
import { newCounters } from '../../../web/src/device/counters';
import type { MemoryCache, Placement } from '../../../web/src/device/memory';
import type { DeviceSettings, OpenDevice } from '../../../web/src/device/module';
import type { Heads } from '../../../web/src/device/provider';
import { RuntimeError } from '../../../web/src/errors';
import { ErrorCode } from '../../../web/src/schema';
import { at, Block } from './memory';
import { MirrorSession } from './session';

type At = Placement<Block>;

export class MirrorDevice implements OpenDevice {
  readonly name = 'mirror';
  readonly description = { description: 'typed arrays' };
  readonly counters = newCounters();
  readonly elements = new ElementForms({ f16: true });
  readonly buffers = new BufferTable<Block>();
  readonly limits = { buffer: 2 ** 30, binding: 2 ** 30 };
  readonly memory: MemoryCache<Block> = {
    acquire: (bytes) => this.makeMemory('', bytes),
    acquireZeros: (bytes) => this.makeMemory('', bytes),
    release() {},
  };
  lost: string | undefined;

  get bytes(): number {
    return this.buffers.bytes;
  }

  session(_settings: DeviceSettings): MirrorSession {
    return new MirrorSession(this);
  }

  ensureAlive(): void {
    if (this.lost !== undefined) throw new RuntimeError(ErrorCode.device_lost, `the mirror is broken: ${this.lost}`);
  }

  async failure(error: unknown): Promise<unknown> {
    return error;
  }

  complaint(messages: readonly string[]): RuntimeError {
    return new RuntimeError(ErrorCode.fail, messages.join('; '));
  }

  async read(id: number, bytes: number): Promise<Uint8Array> {
    return at(this.buffers.get(id), bytes).slice();
  }

  write(place: Placement, bytes: Uint8Array): void {
    at(place, bytes.length).set(bytes);
  }

  allocate(bytes: number): number {
    return this.buffers.allocate(bytes, this.memory);
  }

  async copy(source: number, target: number, bytes: number): Promise<void> {
    this.write(this.buffers.get(target), at(this.buffers.get(source), bytes));
  }

  makeMemory(_label: string, bytes: number): Block {
    this.counters.buffers++;
    return new Block(bytes);
  }

  copyRows({ count, rowBytes }: Heads, rows: number, [from, room]: [At, number], [to, roomThere]: [At, number]): void {
    for (let head = 0; head < count; head++) {
      const [source, target] = [from.offset + head * room * rowBytes, to.offset + head * roomThere * rowBytes];
      this.write({ ...to, offset: target }, at({ ...from, offset: source }, rows * rowBytes));
    }
  }
}
