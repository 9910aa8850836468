// A WebNN context as a device.
import type { Forms } from '../../contract/elements';
import { cpuElementSize } from '../../contract/elements';
import { BufferTable } from '../../device/buffers';
import { newCounters } from '../../device/counters';
import { roundUp } from '../../device/memory_plan';
import type { MemoryCache, Placement } from '../../device/memory';
import type { DeviceProvider } from '../../device/provider';
import type { AskedCall } from '../../device/single';
import { invalid, messageOf, RuntimeError } from '../../errors';
import { type DType, ErrorCode } from '../../schema';
import { Block, blockAt, type Tensors } from './memory';
import { bytesOf, type MlContext, type MlDescriptor, type MlTensor, NAME } from './ml';
import { refusalOf } from './trial';

/** Elements have the same form in tensors and in the heap. */
class HeapForms implements Forms {
  storage = () => 'f32' as const;
  packing = () => undefined;
  size = (dtype: DType) => cpuElementSize(dtype)!;
  same = () => true;
  widen = (_dtype: DType, bytes: Uint8Array) => bytes;
  narrow = (_dtype: DType, bytes: Uint8Array) => bytes;
}

/** The browser may report a lost context after the failures that it causes. */
const LOSS_DELAY_MS = 100;

export class MlDevice implements DeviceProvider, Tensors {
  readonly name = NAME;
  readonly counters = newCounters();
  readonly elements = new HeapForms();
  readonly buffers = new BufferTable<Block>();
  readonly limits = { buffer: 2 ** 31 - 1, binding: 2 ** 31 - 1 };
  readonly memory: MemoryCache<Block> = {
    acquire: (bytes) => this.makeMemory('', bytes),
    acquireZeros: (bytes) => this.makeMemory('', bytes),
    release: (block) => block.destroy(),
  };
  lost: string | undefined;
  private readonly spare = new Map<string, MlTensor[]>();
  private last: Promise<unknown> | undefined;

  constructor(
    readonly context: MlContext,
    readonly description: object,
  ) {
    void context.lost.then(({ message }) => {
      this.lost ??= message || 'the browser did not say why';
    });
  }

  get bytes(): number {
    return this.buffers.bytes;
  }

  ensureAlive(): void {
    if (this.lost !== undefined) throw this.lossError();
  }

  refusal(call: AskedCall): string | undefined {
    this.ensureAlive();
    return refusalOf(this.context, this.elements, call);
  }

  async failure(error: unknown): Promise<unknown> {
    await Promise.race([this.context.lost, new Promise((resolve) => setTimeout(resolve, LOSS_DELAY_MS))]);
    return this.lost === undefined ? error : this.lossError();
  }

  private lossError(): RuntimeError {
    return new RuntimeError(ErrorCode.device_lost, `the WebNN context was lost: ${this.lost}`, { provider: NAME });
  }

  /** The error for a call that the browser refused: the page's own MLTensors are the cause if there are any. */
  blamed(error: unknown, lentAs: readonly (string | undefined)[]): unknown {
    const lent = lentAs.filter((what) => what !== undefined);
    if (lent.length === 0) return error;
    return invalid(
      `WebNN does not take an MLTensor of the page, given as ${lent.join(' or ')}: ${messageOf(error)} It must be ` +
        "of the session's own MLContext, alive, and, for nodes on the CPU, `readable` or `writable`",
    );
  }

  complaint(messages: readonly string[]): RuntimeError {
    return new RuntimeError(ErrorCode.runtime_exception, messages.join('; '), { provider: NAME });
  }

  /** True if all work so far was submitted to the context. */
  get idle(): boolean {
    return this.last === undefined;
  }

  /** Runs after all earlier work; at once if there is none. */
  inOrder<T>(work: () => T | Promise<T>): T | Promise<T> {
    if (!this.last) {
      const done = work();
      if (done instanceof Promise) this.wait(done);
      return done;
    }
    const done = this.last.then(work);
    this.wait(done);
    return done;
  }

  private wait(work: Promise<unknown>): void {
    const last = work
      .catch(() => undefined)
      .then(() => {
        if (this.last === last) this.last = undefined;
      });
    this.last = last;
  }

  async read(id: number, bytes: number): Promise<Uint8Array> {
    return this.readAt(this.buffers.get(id), bytes);
  }

  /** The bytes at a place after all earlier work. */
  async readAt(place: Placement, bytes: number): Promise<Uint8Array> {
    try {
      return await this.inOrder(() => this.readNow(place, bytes));
    } catch (error) {
      throw await this.failure(error);
    }
  }

  /** The same, after earlier work was submitted to the context. */
  readNow(place: Placement, bytes: number): Promise<Uint8Array> | Uint8Array {
    const { buffer, offset } = blockAt(place);
    const tensor = buffer.holder(offset)?.tensor;
    if (!tensor) return buffer.bytes(offset, bytes).slice();
    return this.contents(tensor, buffer.lentAs).then((read) => ofSize(read, bytes));
  }

  async contents(tensor: MlTensor, lentAs?: string): Promise<Uint8Array> {
    try {
      return new Uint8Array(await this.context.readTensor(tensor));
    } catch (error) {
      throw this.blamed(error, [lentAs]);
    }
  }

  put(tensor: MlTensor, bytes: Uint8Array, lentAs?: string): void {
    try {
      this.context.writeTensor(tensor, bytes.subarray(0, bytesOf(tensor)));
    } catch (error) {
      throw this.blamed(error, [lentAs]);
    }
  }

  write(place: Placement, bytes: Uint8Array): void {
    const { buffer, offset } = blockAt(place);
    buffer.write(offset, bytes);
  }

  allocate(bytes: number): number {
    return this.buffers.allocate(bytes, this.memory);
  }

  async copy(source: number, target: number, bytes: number): Promise<void> {
    this.write(this.buffers.get(target), await this.read(source, bytes));
  }

  makeMemory(_label: string, bytes: number): Block {
    this.counters.buffers++;
    return new Block(roundUp(bytes, 16), this);
  }

  copyRows(): never {
    throw new RuntimeError(ErrorCode.not_implemented, 'provider "webnn" has no caches that grow', { provider: NAME });
  }

  /** A tensor for inputs and outputs of graphs. */
  async tensor(descriptor: MlDescriptor): Promise<MlTensor> {
    const known = this.spare.get(keyOf(descriptor))?.pop();
    if (known) return known;
    try {
      return await this.context.createTensor({ ...descriptor, readable: true, writable: true });
    } catch (error) {
      const what = `no tensor of ${descriptor.dataType}[${descriptor.shape}] in WebNN: ${messageOf(error)}`;
      throw new RuntimeError(ErrorCode.out_of_memory, what);
    }
  }

  giveBack(tensor: MlTensor): void {
    const key = keyOf(tensor);
    const spare = this.spare.get(key) ?? [];
    this.spare.set(key, spare);
    if (spare.length < SPARE) spare.push(tensor);
    else tensor.destroy();
  }

  /** Frees the cached tensors. */
  close(): void {
    this.lost ??= 'it was closed';
    for (const tensor of [...this.spare.values()].flat()) tensor.destroy();
    this.spare.clear();
  }
}

/** Number of cached tensors of one type and shape. */
const SPARE = 4;

/** A tensor of few bytes is shorter than its place. */
function ofSize(read: Uint8Array, bytes: number): Uint8Array {
  if (read.length >= bytes) return read.subarray(0, bytes);
  const whole = new Uint8Array(bytes);
  whole.set(read);
  return whole;
}

const keyOf = ({ dataType, shape }: MlDescriptor) => `${dataType} ${shape}`;
