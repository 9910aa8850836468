// The interface of a device for sessions, for any kind of device: a provider has one for each open device.
import type { Forms } from '../contract/elements';
import type { ErrorPlace, RuntimeError } from '../errors';
import type { Timed } from '../timeline';
import type { Arena } from './arena';
import type { BufferTable } from './buffers';
import type { Command, CompiledSegment } from './commands';
import type { Counters } from './counters';
import type { Memory, MemoryCache, Placement } from './memory';
import type { DeviceTimes } from './profile';
import type { TensorKeeper } from './keeper';
import type { AskedCall, SingleKernels } from './single';
import type { SegmentPlan } from './segment_plan';

/** The number of heads in all batches, and the bytes of one row of one head: a multiple of 4. */
export interface Heads {
  readonly count: number;
  readonly rowBytes: number;
}

/** An open device. */
export interface DeviceProvider {
  /** Its provider's name, as sessions know it. */
  readonly name: string;
  readonly counters: Counters;
  readonly elements: Forms;
  readonly buffers: BufferTable;
  /** In bytes: the largest buffer, and the largest part of a buffer that can be bound. */
  readonly limits: { readonly buffer: number; readonly binding: number };
  /** A description for people. */
  readonly description: object;
  /** Bytes of tensors that belong to no session, and of cached memory. */
  readonly bytes: number;
  /** Cached memory, if any. */
  readonly cacheStats?: object;
  /** The reason why it was lost; undefined while it is alive. */
  readonly lost: string | undefined;
  /** Throws device_lost if it was lost. */
  ensureAlive(): void;
  /** The error to throw for a rejected promise of the device. */
  failure(error: unknown): Promise<unknown>;
  /** The error to throw for the device's error messages. */
  complaint(messages: readonly string[], place?: ErrorPlace): RuntimeError;
  /** Reads `bytes` bytes of a tensor, after all work submitted so far. */
  read(id: number, bytes: number): Promise<Uint8Array>;
  /** Writes bytes, whose number need not be a multiple of 4; the memory must have room for rounding up. */
  write(place: Placement, bytes: Uint8Array): void;
  /** A tensor of zeros that belongs to no session, until it is freed. */
  allocate(bytes: number): number;
  /** Memory of weights, until `destroy`. */
  makeMemory(label: string, bytes: number): Memory & { destroy(): void };
  /** Copies between tensors of this device, after all earlier work. */
  copy(source: number, target: number, bytes: number): Promise<void>;
  /**
   * Copies the first rows of each head from one tensor to another. Each tensor's number is the rows per head that it
   * has room for.
   */
  copyRows(heads: Heads, rows: number, from: readonly [Placement, number], to: readonly [Placement, number]): void;

  // Members of some devices only: see `capability`.
  /** A session, or a kernel of its own, begins to use the device. */
  enter?(): void;
  /** Ends its use: after the last one the device keeps no memory for later. */
  leave?(): void;
  /** Lets the browser free its copies of written data. */
  flush?(): void;
  /** True if a run's recording may be the whole of the next run: `enableGraphCapture`. */
  readonly capturesGraphs?: true;
  /** The owner of tensors that pages hold. */
  readonly keeper?: TensorKeeper;
  readonly kernels?: SingleKernels;
  /** Returns the reason why the device refuses a call; undefined: it accepts the call. For placement. */
  refusal?(call: AskedCall): string | undefined;
  /** The browser's own object. */
  readonly native?: object;
}

/** A device's errors in one run. */
export interface RunErrors {
  /** True for a run that ends before the device has reported on its work. */
  untold: boolean;
  /** Does a part of the run's work; `making`: true if it makes something on the device. */
  during<T>(making: boolean, work: () => T): T;
  /** All errors so far, after the run's last work; undefined: none, without waiting. */
  found(): Promise<string[]> | undefined;
  /** The same for a failed run: late errors belong to it, and not to the next one. */
  foundLate(): Promise<string[]>;
}

/** For a device that throws errors at once, and reports none late. */
export function errorsAtOnce(device: DeviceProvider): RunErrors {
  return {
    untold: false,
    during: (_, work) => work(),
    found: () => {
      device.ensureAlive();
      return undefined;
    },
    foundLate: async () => [],
  };
}

export interface Download extends Placement {
  readonly bytes: number;
}

/** Downloads in progress. */
export interface PendingReadback {
  /** `use` receives the bytes of each download; they are gone when it returns. */
  finish<T>(use: (parts: Uint8Array[]) => T): Promise<T>;
}

/** Work submitted together. */
export interface Submission {
  readonly segment: CompiledSegment;
  /** Copied after its commands. */
  readonly keep: readonly { readonly source: Placement; readonly target: Placement; readonly bytes: number }[];
  /** Downloaded after that. */
  readonly read: readonly Download[];
  readonly timed: Timed | undefined;
}

/** The memory of one session besides its weights, shared among its runs. */
export interface SessionMemory {
  readonly arena: Arena;
  /** For tensors that outlive runs. */
  readonly tensors: MemoryCache;
  /** Bytes that belong to this session only. */
  readonly bytes: number;
  readonly cacheStats?: object;
  /** Frees cached memory. */
  clear(): void;
  destroy(): void;
}

/** The device's work for a session's recordings. */
export interface DeviceWork {
  readonly provider: DeviceProvider;
  readonly memory: SessionMemory;
  /** @param kept tensors that are separate from all others, like weights. */
  asPlanned(
    commands: readonly Command[],
    plan: Pick<SegmentPlan, 'inPlace' | 'aliased'>,
    kept: ReadonlySet<number>,
  ): Command[];
  /**
   * `once`: the commands whose results are kept, by index; `outside`: the segment's tensors that are read after it.
   * Programs are compiled.
   */
  build(
    commands: readonly Command[],
    placeOf: (id: number) => Placement,
    once?: ReadonlySet<number>,
    outside?: ReadonlySet<number>,
  ): CompiledSegment;
  submit(submission: Submission): { readonly pending: PendingReadback; readonly times?: DeviceTimes };
}
