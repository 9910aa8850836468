// A WebGL 2 context as a device.
import { ElementForms } from '../../contract/elements';
import { type DeviceTraits, KernelError } from '../../contract/kernel';
import { BufferTable } from '../../device/buffers';
import type { Counters } from '../../device/counters';
import type { MemoryCache, Placement } from '../../device/memory';
import type { OpenDevice } from '../../device/module';
import type { DeviceSession } from '../../device/session';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { describeContext, NAME } from './context';
import type { Gl } from './gl';
import { Block, blockAt } from './memory';
import { Programs } from './programs';
import { Readback } from './readback';
import { copy } from './segment';

export class GlDevice implements OpenDevice {
  readonly name = NAME;
  readonly counters: Counters;
  readonly elements = new ElementForms({ f16: false });
  readonly buffers = new BufferTable<Block>();
  readonly memory = this.cacheOf(() => undefined);
  /** For tensors that outlive runs. */
  readonly tensors = this.cacheOf((bytes) => bytes);
  readonly limits: { readonly buffer: number; readonly binding: number };
  readonly pipelines: Programs;
  readonly readback: Readback;
  readonly description: object;
  /** As kernels see it: a thread is a fragment. */
  readonly gpu: {
    readonly traits: DeviceTraits;
    readonly traitsForLarge: DeviceTraits;
    readonly elements: ElementForms;
    readonly device: { readonly limits: { readonly maxBufferSize: number } };
  };

  constructor(
    readonly context: Gl,
    private readonly newSession: (device: GlDevice) => DeviceSession,
    checkWrites = false,
  ) {
    const { gl, counters, textures } = context;
    this.counters = counters;
    this.pipelines = new Programs(gl, counters, checkWrites);
    this.readback = new Readback(context);
    this.description = describeContext(gl);
    const { largest } = textures;
    this.limits = { buffer: largest, binding: largest };
    const traits = traitsOf(gl, largest);
    const device = { limits: { maxBufferSize: largest } };
    this.gpu = { traits, traitsForLarge: traits, elements: this.elements, device };
  }

  get lost(): string | undefined {
    return this.context.lost;
  }

  get bytes(): number {
    return this.buffers.bytes;
  }

  session(): DeviceSession {
    return this.newSession(this);
  }

  ensureAlive(): void {
    this.context.ensureAlive();
  }

  async failure(error: unknown): Promise<unknown> {
    this.ensureAlive();
    return error;
  }

  complaint(messages: readonly string[]): RuntimeError {
    const noMemory = messages.some((message) => message.includes('OUT_OF_MEMORY'));
    const code = noMemory ? ErrorCode.out_of_memory : ErrorCode.runtime_exception;
    return new RuntimeError(code, messages.join('; '), { provider: NAME });
  }

  /** The CPU may then run the node. */
  tooLarge(message: string): Error {
    return new KernelError(`${message} (MAX_TEXTURE_SIZE); place the node on wasm`, true);
  }

  read(id: number, bytes: number): Promise<Uint8Array> {
    return this.readback.begin([{ ...this.buffers.get(id), bytes }]).finish(([part]) => part.slice());
  }

  write(place: Placement, bytes: Uint8Array): void {
    const { buffer, offset } = blockAt(place);
    buffer.write(offset, bytes);
  }

  allocate(bytes: number): number {
    return this.buffers.allocate(bytes, this.tensors);
  }

  async copy(source: number, target: number, bytes: number): Promise<void> {
    copy(this.context, this.buffers.get(source), this.buffers.get(target), bytes);
  }

  private cacheOf(lasting: (bytes: number) => number | undefined): MemoryCache<Block> {
    const acquire = (bytes: number) => this.makeMemory('', bytes, lasting(bytes));
    return { acquire, acquireZeros: acquire, release: (block) => block.destroy() };
  }

  makeMemory(_label: string, bytes: number, lasting?: number): Block {
    this.counters.buffers++;
    return new Block(bytes, this.context.textures, lasting);
  }

  copyRows(): never {
    throw new RuntimeError(ErrorCode.not_implemented, 'provider "webgl" has no caches that grow', { provider: NAME });
  }
}

/** Threads know nothing of each other, and each writes the element of its own index only. */
function traitsOf(gl: WebGL2RenderingContext, largest: number): DeviceTraits {
  return {
    software: false,
    slowCompiler: true,
    f16: false,
    subgroups: false,
    bytesFrom: Infinity,
    maxWorkgroupsPerDimension: 2 ** 31 - 1,
    maxStorageBuffersPerStage: (gl.getParameter(gl.MAX_TEXTURE_IMAGE_UNITS) as number) + 1,
    maxStorageBindingSize: largest,
    maxInvocations: 1,
    maxWorkgroupStorage: 0,
    ownElement: true,
  };
}
