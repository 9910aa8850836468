// The GPU side of a session.
import type { WebGpuSettings } from './options';
import type { Kernel, TileTable } from '../../contract/kernel';
import type { Blocks } from '../../device/blocks';
import type { CallInput, Host, Resolved } from '../../device/call';
import type { Command, CompiledSegment } from '../../device/commands';
import type { Placement } from '../../device/memory';
import type { DeviceTimes } from '../../device/profile';
import type { PendingReadback, RunErrors, Submission } from '../../device/provider';
import { DeviceSession } from '../../device/session';
import type { SegmentPlan } from '../../device/segment_plan';
import { copyCommands } from './copy_blocks';
import { copyRows } from './copy_rows';
import { Profiler } from './profiler';
import type { GpuProvider } from './provider';
import { Readback } from './readback';
import { findKernel } from './registry';
import { resolveKernel } from './resolve';
import { GpuRunErrors, type ValidationMode } from './scopes';
import { buildSegment, compileSegment, type GpuCommand, type GpuPlacement, type GpuSegment } from './segment';
import { GpuSessionMemory } from './session_memory';
import { elementType, packUniforms } from './shader';
import { asPlanned } from './variants';

export class GpuSession extends DeviceSession {
  declare readonly provider: GpuProvider;
  readonly memory: GpuSessionMemory;
  /** For this provider's part of generate.mjs, a separate file. */
  readonly tools = { Readback, compileSegment, copyRows, elementType, packUniforms };
  private readonly mode: ValidationMode;

  constructor(
    provider: GpuProvider,
    { cacheModes, validationMode }: WebGpuSettings,
    private readonly userKernels?: ReadonlyMap<string, Kernel>,
    tiles?: TileTable,
  ) {
    super(provider, validationMode === 'disabled' || validationMode === 'wgpuOnly', tiles);
    this.memory = new GpuSessionMemory(provider, cacheModes);
    this.mode = validationMode;
  }

  findKernel(op: string, domain: string): Kernel {
    return findKernel(op, domain, this.userKernels);
  }

  resolve(
    { kernel, attributes }: { readonly kernel: Kernel; readonly attributes: unknown },
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    host: Host,
  ): Resolved {
    return resolveKernel(kernel, attributes, inputs, wants, host, this.provider);
  }

  copyBlocks(blocks: Blocks): readonly Command[] {
    return copyCommands(blocks, this.provider);
  }

  asPlanned(
    commands: readonly Command[],
    plan: Pick<SegmentPlan, 'inPlace' | 'aliased'>,
    kept: ReadonlySet<number>,
  ): Command[] {
    return asPlanned(commands as readonly GpuCommand[], plan, kept, this.provider.pipelines);
  }

  build(commands: readonly Command[], placeOf: (id: number) => Placement, once?: ReadonlySet<number>): CompiledSegment {
    const { uniform } = this.memory.caches;
    const at = (id: number) => placeOf(id) as GpuPlacement;
    return buildSegment(this.provider.gpu, uniform, commands as readonly GpuCommand[], at, once);
  }

  submit({ segment, keep, read, timed }: Submission): { pending: PendingReadback; times?: DeviceTimes } {
    const { gpu } = this.provider;
    const profiler = timed && new Profiler(gpu, this.memory.caches, timed);
    const encoder = (segment as GpuSegment).encode(gpu.device.createCommandEncoder(), profiler);
    profiler?.resolve(encoder);
    for (const { source, target, bytes } of keep) {
      const [from, to] = [source as GpuPlacement, target as GpuPlacement];
      encoder.copyBufferToBuffer(from.buffer, from.offset, to.buffer, to.offset, bytes);
    }
    const pending = this.memory.readback.encode(encoder, read as readonly (GpuPlacement & { bytes: number })[]);
    gpu.submit([encoder.finish()]);
    if (profiler) profiler.submittedAt = performance.now();
    this.memory.caches.endOfRun();
    return { pending, times: profiler };
  }

  errors(strict = false): RunErrors {
    return new GpuRunErrors(this.provider.gpu, strict ? 'basic' : this.mode);
  }
}
