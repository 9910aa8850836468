// A compiled segment: pipelines compiled, bind groups and uniforms built, once. Encoding it again makes no new objects.
import type { Tiling } from '../../contract/kernel';
import type { BufferCache } from './buffer_cache';
import type { Gpu } from './device';
import { roundUp } from '../../device/memory_plan';
import type { Pipeline } from './pipelines';
import type { Profiler } from './profiler';
import {
  type Command,
  type CompiledSegment,
  compilePrograms,
  type CopyCommand,
  type Region,
} from '../../device/commands';
import type { Placement } from '../../device/memory';

export type GpuCommand = Command<Pipeline>;
export type GpuPlacement = Placement<GPUBuffer>;

type Step =
  | {
      readonly pipeline: GPUComputePipeline;
      readonly group: GPUBindGroup;
      readonly workgroups: readonly [number, number, number];
      readonly label: string;
      readonly instance?: number;
      readonly tiling?: Tiling;
      readonly once: boolean;
    }
  | {
      readonly source: GpuPlacement;
      readonly target: GpuPlacement;
      readonly bytes: number;
      readonly between: GPUBuffer | undefined;
      readonly once: boolean;
    };

const UNIFORM_ALIGNMENT = 256;
/** Dispatches submitted together: while a GPU runs them, the browser's GPU process prepares the next ones. */
const SUBMITTED_TOGETHER = 32;
/** COPY_SRC | COPY_DST */
const COPIED = 4 | 8;

export class GpuSegment implements CompiledSegment {
  /** True if the one-time work has succeeded. */
  settled = false;

  constructor(
    private readonly steps: readonly Step[],
    private readonly uniforms: GPUBuffer | undefined,
    private readonly between: GPUBuffer | undefined,
    private readonly cache: BufferCache,
    private readonly gpu: Gpu,
  ) {}

  /**
   * Encodes every step, or the remaining ones: one compute pass, interrupted only by copies; with a profiler of
   * dispatches, a pass for each. An idle GPU receives parts of a long segment before the rest is encoded.
   * @returns the encoder to continue with.
   */
  encode(encoder: GPUCommandEncoder, profiler?: Profiler): GPUCommandEncoder {
    const apart = profiler?.apart ?? false;
    const early = !this.gpu.traits.software && !apart && !this.gpu.awaited;
    let dispatches = 0;
    let pass: GPUComputePassEncoder | undefined;
    /** The pipeline set in the open pass. */
    let pipeline: GPUComputePipeline | undefined;
    for (const step of this.steps) {
      if (step.once && this.settled) continue;
      if ('pipeline' in step) {
        if (early && dispatches === SUBMITTED_TOGETHER) {
          pass?.end();
          pass = undefined;
          this.gpu.submit([encoder.finish()]);
          encoder = this.gpu.device.createCommandEncoder();
          dispatches = 0;
        }
        dispatches++;
        if (apart) pass?.end();
        if (apart || !pass) {
          const { label: kernel, workgroups, instance, tiling } = step;
          pass = profiler?.beginPass(encoder, { kernel, workgroups, instance, tiling }) ?? encoder.beginComputePass();
          pipeline = undefined;
        }
        if (step.pipeline !== pipeline) pass.setPipeline((pipeline = step.pipeline));
        pass.setBindGroup(0, step.group);
        pass.dispatchWorkgroups(...step.workgroups);
        this.gpu.counters.dispatches++;
      } else {
        pass?.end();
        pass = undefined;
        const { source, target, bytes, between } = step;
        if (between) encoder.copyBufferToBuffer(source.buffer, source.offset, between, 0, bytes);
        encoder.copyBufferToBuffer(
          between ?? source.buffer,
          between ? 0 : source.offset,
          target.buffer,
          target.offset,
          bytes,
        );
      }
    }
    pass?.end();
    return encoder;
  }

  /**
   * The kernel instance of the first dispatch that the GPU refuses. Each is encoded separately, and only one without
   * workgroups is submitted, because destroyed buffers are not reported earlier.
   */
  async refused(): Promise<number | undefined> {
    const { device } = this.gpu;
    const outcomes = this.steps.map((step) => {
      if (!('pipeline' in step)) return undefined;
      const alone = (workgroups: readonly [number, number, number]): GPUCommandBuffer => {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(step.pipeline);
        pass.setBindGroup(0, step.group);
        pass.dispatchWorkgroups(...workgroups);
        pass.end();
        return encoder.finish();
      };
      device.pushErrorScope('validation');
      alone(step.workgroups);
      device.queue.submit([alone([0, 0, 0])]);
      return device.popErrorScope().catch(() => null);
    });
    const first = (await Promise.all(outcomes)).findIndex((error) => error);
    const step = this.steps[first];
    return step && 'pipeline' in step ? step.instance : undefined;
  }

  /** Frees its own memory; the tensors' buffers have other owners. */
  destroy(): void {
    if (this.uniforms) this.cache.release(this.uniforms);
    this.between?.destroy();
  }
}

/**
 * Waits for all pipelines, then builds the commands' objects.
 * @param cache of uniform buffers.
 * @param once the commands whose results are kept, by index.
 */
export async function compileSegment(
  gpu: Gpu,
  cache: BufferCache,
  commands: readonly GpuCommand[],
  placementOf: (id: number) => GpuPlacement,
  once?: ReadonlySet<number>,
): Promise<GpuSegment> {
  await compilePrograms(commands);
  return buildSegment(gpu, cache, commands, placementOf, once);
}

/** The same, once the pipelines are ready. */
export function buildSegment(
  gpu: Gpu,
  cache: BufferCache,
  commands: readonly GpuCommand[],
  placementOf: (id: number) => GpuPlacement,
  once?: ReadonlySet<number>,
): GpuSegment {
  const uniforms = uploadUniforms(gpu, cache, commands);
  const placeOf = (region: Region): GpuPlacement => {
    const { buffer, offset } = placementOf(region.id);
    return { buffer, offset: offset + (region.offset ?? 0) };
  };
  // WebGPU cannot copy within a buffer, and results of earlier segments cannot move.
  const within = ({ source, target }: CopyCommand) => placeOf(source).buffer === placeOf(target).buffer;
  const widest = Math.max(
    0,
    ...commands.flatMap((command) => (command.kind === 'copy' && within(command) ? [command.source.bytes] : [])),
  );
  const between =
    widest > 0 ? gpu.createBuffer({ label: 'copied within a buffer', size: widest, usage: COPIED }) : undefined;
  const steps = commands.map((command, i): Step => {
    if (command.kind === 'copy') {
      const places = {
        source: placeOf(command.source),
        target: placeOf(command.target),
        between: within(command) ? between : undefined,
      };
      return { ...places, bytes: command.source.bytes, once: once?.has(i) ?? false };
    }
    const entries: GPUBindGroupEntry[] = command.bindings.map((region, binding) => {
      const { buffer, offset } = placeOf(region);
      return { binding, resource: { buffer, offset, size: region.bytes } };
    });
    if (command.uniforms) {
      const resource = {
        buffer: uniforms.buffer!,
        offset: uniforms.offsets[i],
        size: roundUp(command.uniforms.byteLength, 16),
      };
      entries.push({ binding: entries.length, resource });
    }
    gpu.counters.bind_groups++;
    const { program: pipeline, workgroups, instance, tiling } = command;
    const group = gpu.device.createBindGroup({ label: pipeline.label, layout: pipeline.bindGroupLayout, entries });
    return {
      pipeline: pipeline.ready!,
      group,
      workgroups,
      label: pipeline.label,
      instance,
      tiling,
      once: once?.has(i) ?? false,
    };
  });
  return new GpuSegment(steps, uniforms.buffer, between, cache, gpu);
}

/** The uniforms of all commands in one buffer; equal ones share their place. */
function uploadUniforms(
  gpu: Gpu,
  cache: BufferCache,
  commands: readonly GpuCommand[],
): { buffer: GPUBuffer | undefined; offsets: number[] } {
  const places = new Map<string, number>();
  const blocks: Uint8Array[] = [];
  let size = 0;
  const offsets = commands.map((command) => {
    if (command.kind !== 'dispatch' || !command.uniforms) return 0;
    const key = command.uniforms.join();
    let offset = places.get(key);
    if (offset === undefined) {
      offset = size;
      places.set(key, offset);
      blocks.push(command.uniforms);
      size += roundUp(command.uniforms.byteLength, UNIFORM_ALIGNMENT);
    }
    return offset;
  });
  if (size === 0) return { buffer: undefined, offsets };
  const buffer = cache.acquire(size, 'uniforms');
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const block of blocks) {
    bytes.set(block, offset);
    offset += roundUp(block.byteLength, UNIFORM_ALIGNMENT);
  }
  gpu.device.queue.writeBuffer(buffer, 0, bytes);
  return { buffer, offsets };
}
