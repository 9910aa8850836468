// The device's side of a session: its kernels, its memory, and the run under way.
import type { Kernel, Tensor, TileTable } from '../contract/kernel';
import type { Blocks } from './blocks';
import type { CallInput, Host, Resolved } from './call';
import type { Command, CompiledSegment } from './commands';
import type { DeviceProvider, DeviceWork, RunErrors, SessionMemory } from './provider';
import type { Recorder } from './recorder';
import type { RunEvent } from './recording';

/** What others than its session ask of a kernel: how it resolves a call is between the two. */
export type DeviceKernel = Omit<Kernel, 'resolve'>;

interface KernelInstance {
  readonly kernel: DeviceKernel;
  readonly attributes: unknown;
}

/** A kernel's call, and the virtual ids that it made: its outputs', where they are no views, and all of them. */
interface LastCall {
  readonly event: RunEvent;
  readonly ids: readonly (number | undefined)[];
  readonly firstId: number;
  readonly endId: number;
}

export abstract class DeviceSession implements DeviceWork {
  /** By kernel, what it was last asked and gave. */
  readonly lastCalls = new Map<number, LastCall>();
  readonly kernels = new Map<number, KernelInstance>();
  abstract readonly memory: SessionMemory;
  recorder: Recorder | undefined;
  /** The outputs of this run that are bound to the buffers of what is fed, by kernel: pairs of output and input. */
  boundInPlace: ReadonlyMap<number, readonly (readonly [output: number, input: number])[]> = new Map();
  /** Of this run: see Context. */
  rowsBefore: Tensor | undefined;
  /** Of this run, what a kernel's call must be like besides: throws if it is not. `bytesOf`: what came from the CPU. */
  checkCall: ((event: RunEvent, bytesOf: (id: number) => Uint8Array | undefined) => void) | undefined;
  /**
   * Nothing is computed: what the core wants from the device is zeros. For finding out what there is to compile, in so
   * many calls of kernels.
   */
  dryRun: { calls: number } | undefined;

  constructor(
    readonly provider: DeviceProvider,
    /** Whether dispatches are taken as kernels give them; the device finds what is wrong with them, less clearly. */
    readonly unchecked: boolean,
    readonly tiles?: TileTable,
  ) {}

  /** Throws not_implemented where there is none. */
  abstract findKernel(op: string, domain: string): DeviceKernel;
  /** Output shapes and commands of a call; nothing runs. `wants[i]`: whether anything reads output i. */
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
  /** Of a run; `strict`: whatever the session's validation mode. */
  abstract errors(strict?: boolean): RunErrors;
}
