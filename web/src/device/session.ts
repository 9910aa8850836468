// The device's side of a session: its kernels, its memory, and the current run.
import type { Kernel, Tensor, TileTable } from '../contract/kernel';
import type { Blocks } from './blocks';
import type { CallInput, Host, Resolved } from './call';
import type { Command, CompiledSegment } from './commands';
import type { DeviceProvider, DeviceWork, RunErrors, SessionMemory } from './provider';
import type { Recorder } from './recorder';
import type { RunEvent } from './recording';

/** A kernel for code outside its session: only the session knows how it resolves a call. */
export type DeviceKernel = Omit<Kernel, 'resolve'>;

interface KernelInstance {
  readonly kernel: DeviceKernel;
  readonly attributes: unknown;
}

/** A kernel's call, and the virtual ids that it made: those of outputs, unless they are views, and all of them. */
interface LastCall {
  readonly event: RunEvent;
  readonly ids: readonly (number | undefined)[];
  readonly firstId: number;
  readonly endId: number;
}

export abstract class DeviceSession implements DeviceWork {
  /** By kernel, its last call and the result. */
  readonly lastCalls = new Map<number, LastCall>();
  readonly kernels = new Map<number, KernelInstance>();
  abstract readonly memory: SessionMemory;
  recorder: Recorder | undefined;
  /** The outputs of this run that share buffers with feeds, by kernel: pairs of output and input. */
  boundInPlace: ReadonlyMap<number, readonly (readonly [output: number, input: number])[]> = new Map();
  /** For this run: see Context. */
  rowsBefore: Tensor | undefined;
  /**
   * For this run, checks a kernel's call, and throws if it is unsuitable. `bytesOf`: the bytes that came from the CPU.
   */
  checkCall: ((event: RunEvent, bytesOf: (id: number) => Uint8Array | undefined) => void) | undefined;
  /**
   * Nothing is computed: the core reads zeros from the device. For finding the pipelines to compile, with at most this
   * many calls of kernels.
   */
  dryRun: { calls: number } | undefined;

  constructor(
    readonly provider: DeviceProvider,
    /** True if dispatches are not checked; the device then finds errors, with less clear messages. */
    readonly unchecked: boolean,
    readonly tiles?: TileTable,
  ) {}

  /** Throws not_implemented if there is none. */
  abstract findKernel(op: string, domain: string): DeviceKernel;
  /** Output shapes and commands of a call; nothing runs. `wants[i]`: true if a node reads output i. */
  abstract resolve(
    instance: KernelInstance,
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    host: Host,
  ): Resolved;
  abstract copyBlocks(blocks: Blocks): readonly Command[];
  abstract asPlanned(...of: Parameters<DeviceWork['asPlanned']>): Command[];
  abstract build(...of: Parameters<DeviceWork['build']>): CompiledSegment;
  abstract submit(...of: Parameters<DeviceWork['submit']>): ReturnType<DeviceWork['submit']>;
  /** For a run; `strict`: check even if the session's validation mode does not. */
  abstract errors(strict?: boolean): RunErrors;
}
