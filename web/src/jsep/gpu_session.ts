// The GPU side of a session: its kernels, its memory, and the run under way.
import type { WebGpuSettings } from '../core/webgpu_options';
import type { GpuProvider } from '../providers/webgpu/provider';
import { SessionMemory } from '../providers/webgpu/session_memory';
import type { Kernel, Tensor, TileTable } from '../contract/kernel';
import type { Recorder } from './recorder';
import type { RunEvent } from './recording';

interface KernelInstance {
  readonly kernel: Kernel;
  readonly attributes: unknown;
}

/** A kernel's call, and the virtual ids that it made: its outputs', where they are no views, and all of them. */
interface LastCall {
  readonly event: RunEvent;
  readonly ids: readonly (number | undefined)[];
  readonly firstId: number;
  readonly endId: number;
}

export class GpuSession {
  /** By kernel, what it was last asked and gave. */
  readonly lastCalls = new Map<number, LastCall>();
  readonly kernels = new Map<number, KernelInstance>();
  readonly memory: SessionMemory;
  recorder: Recorder | undefined;
  /** The outputs of this run that are bound to the buffers of what is fed, by kernel: pairs of output and input. */
  boundInPlace: ReadonlyMap<number, readonly (readonly [output: number, input: number])[]> = new Map();
  /** Of this run: see Context. */
  rowsBefore: Tensor | undefined;
  /** Of this run, what a kernel's call must be like besides: throws if it is not. `bytesOf`: what came from the CPU. */
  checkCall: ((event: RunEvent, bytesOf: (id: number) => Uint8Array | undefined) => void) | undefined;
  /**
   * Nothing is computed: what the core wants from the GPU is zeros. For finding out what there is to compile, in so
   * many calls of kernels.
   */
  dryRun: { calls: number } | undefined;

  /**
   * Whether dispatches are taken as kernels give them; WebGPU finds what is wrong with them, and says it less clearly.
   */
  readonly unchecked: boolean;

  constructor(
    readonly provider: GpuProvider,
    { cacheModes, validationMode }: WebGpuSettings,
    readonly userKernels?: ReadonlyMap<string, Kernel>,
    readonly tiles?: TileTable,
  ) {
    this.memory = new SessionMemory(provider, cacheModes);
    this.unchecked = validationMode === 'disabled' || validationMode === 'wgpuOnly';
  }
}
