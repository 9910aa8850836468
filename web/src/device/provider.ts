// What sessions need of a device, whatever kind it is: a provider has one of these for each device that is open.
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

/** How many heads there are in all batches, and the bytes of one row of one head: a multiple of 4. */
export interface Heads {
  readonly count: number;
  readonly rowBytes: number;
}

/** An open device. */
export interface DeviceProvider {
  /** Its provider's, as sessions are told it. */
  readonly name: string;
  readonly counters: Counters;
  readonly elements: Forms;
  readonly buffers: BufferTable;
  /** In bytes: the largest buffer, and the largest part of one that is bound. */
  readonly limits: { readonly buffer: number; readonly binding: number };
  /** What people are told of it. */
  readonly description: object;
  /** Of tensors that belong to no session, and of what waits for a use. */
  readonly bytes: number;
  /** What waits for a use, where something does. */
  readonly cacheStats?: object;
  /** Why it was lost; undefined while it is alive. */
  readonly lost: string | undefined;
  /** Throws device_lost when it is gone. */
  ensureAlive(): void;
  /** What to throw for what a promise of the device was rejected with. */
  failure(error: unknown): Promise<unknown>;
  /** The error to throw for what the device complained of. */
  complaint(messages: readonly string[], place?: ErrorPlace): RuntimeError;
  /** Reads `bytes` bytes of a tensor, when all work submitted so far is done. */
  read(id: number, bytes: number): Promise<Uint8Array>;
  /** Writes bytes whose number need not be a multiple of 4; the memory must have room for the rounding up. */
  write(place: Placement, bytes: Uint8Array): void;
  /** A tensor of zeros that belongs to no session, until it is freed. */
  allocate(bytes: number): number;
  /** Memory of weights, until `destroy`. */
  makeMemory(label: string, bytes: number): Memory & { destroy(): void };
  /** Between tensors of this device, when all work before is done. */
  copy(source: number, target: number, bytes: number): Promise<void>;
  /** Copies the first rows of each head from one tensor to another, each with the rows that its heads have room for. */
  copyRows(heads: Heads, rows: number, from: readonly [Placement, number], to: readonly [Placement, number]): void;

  // What only some devices have: see `capability`.
  /** A session, or a kernel of its own, begins to use the device. */
  enter?(): void;
  /** And ends: after the last one the device keeps no memory for later. */
  leave?(): void;
  /** Lets the browser free its copies of what was written. */
  flush?(): void;
  /** Whether what is recorded of a run may be all of the next one: `enableGraphCapture`. */
  readonly capturesGraphs?: true;
  /** Tensors that pages hold. */
  readonly keeper?: TensorKeeper;
  readonly kernels?: SingleKernels;
  /** Returns the reason why the device does not take a call; undefined: it does. For placement. */
  refusal?(call: AskedCall): string | undefined;
  /** The browser's own object. */
  readonly native?: object;
}

/** What a device complains of in one run. */
export interface RunErrors {
  /** Set for a run that ends before the device has told of what it did. */
  untold: boolean;
  /** Does a part of the run's work; `making`: whether it makes something on the device. */
  during<T>(making: boolean, work: () => T): T;
  /** All so far, when the run's last work is over; undefined: none, without waiting. */
  found(): Promise<string[]> | undefined;
  /** The same for a run that failed: errors that are told late are its own, and not the next one's. */
  foundLate(): Promise<string[]>;
}

/** Of a device that throws what is wrong: it tells nothing late. */
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

/** Downloads whose copies are under way. */
export interface PendingReadback {
  /** `use` sees the bytes of each download; they are gone when it returns. */
  finish<T>(use: (parts: Uint8Array[]) => T): Promise<T>;
}

/** What is done in one go. */
export interface Submission {
  readonly segment: CompiledSegment;
  /** Copied when its commands are done. */
  readonly keep: readonly { readonly source: Placement; readonly target: Placement; readonly bytes: number }[];
  /** Downloaded then. */
  readonly read: readonly Download[];
  readonly timed: Timed | undefined;
}

/** The memory of one session besides its weights: shared among its runs. */
export interface SessionMemory {
  readonly arena: Arena;
  /** Of tensors that outlive runs. */
  readonly tensors: MemoryCache;
  /** Bytes that this session alone has. */
  readonly bytes: number;
  readonly cacheStats?: object;
  /** Frees what waits for a use. */
  clear(): void;
  destroy(): void;
}

/** What a session's recordings ask of its device. */
export interface DeviceWork {
  readonly provider: DeviceProvider;
  readonly memory: SessionMemory;
  /** @param kept tensors that lie apart from all others, as weights do. */
  asPlanned(
    commands: readonly Command[],
    plan: Pick<SegmentPlan, 'inPlace' | 'aliased'>,
    kept: ReadonlySet<number>,
  ): Command[];
  /**
   * `once`: the commands whose results stay, by index; `outside`: the tensors that the segment makes and that are read
   * when it is over. Programs are compiled.
   */
  build(
    commands: readonly Command[],
    placeOf: (id: number) => Placement,
    once?: ReadonlySet<number>,
    outside?: ReadonlySet<number>,
  ): CompiledSegment;
  submit(submission: Submission): { readonly pending: PendingReadback; readonly times?: DeviceTimes };
}
