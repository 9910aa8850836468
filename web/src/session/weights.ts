// Weights, from the network to where they are wanted: the core's heap, GPU buffers, or both. They pass once.
import type { Core } from '../core/core';
import { elementCount } from '../jsep/elements';
import { storageBytes, roundUp } from '../gpu/memory_plan';
import { createStorageBuffer, type GpuTensorMemory } from '../gpu/buffers';
import type { GpuProvider } from '../gpu/provider';
import { downloadChunks } from './download';
import type { PlanWeight } from './plan';

/** Weights share buffers of at most this size; larger ones have their own. */
const PACK_BYTES = 256 << 20;
const OFFSET_ALIGNMENT = 256;

/** The GPU buffers of a session's weights. */
export class GpuWeights {
  private readonly buffers: GPUBuffer[] = [];
  readonly ids = new Map<number, number>();
  private readonly memory = new Map<number, GpuTensorMemory>();
  bytes = 0;

  constructor(readonly provider: GpuProvider, weights: readonly PlanWeight[]) {
    const places: { weight: PlanWeight; buffer: number; offset: number; bytes: number }[] = [];
    const sizes: number[] = [];
    const limit = Math.min(PACK_BYTES, provider.gpu.device.limits.maxBufferSize);
    for (const weight of weights) {
      const bytes = elementCount(weight.dims) * provider.gpu.elements.size(weight.dtype);
      const place = roundUp(storageBytes(bytes), OFFSET_ALIGNMENT);
      if (sizes.length === 0 || sizes[sizes.length - 1] + place > limit) sizes.push(0);
      const buffer = sizes.length - 1;
      places.push({ weight, buffer, offset: sizes[buffer], bytes });
      sizes[buffer] += place;
    }
    for (const size of sizes) this.buffers.push(createStorageBuffer(provider.gpu, size, 'weights'));
    for (const { weight, buffer, offset, bytes } of places) {
      const memory = { buffer: this.buffers[buffer], offset, bytes, shared: true };
      this.memory.set(weight.index, memory);
      this.ids.set(weight.index, provider.buffers.add(memory));
    }
    this.bytes = sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Writes part of a weight, in its GPU form. */
  write(index: number, offset: number, bytes: Uint8Array): void {
    const memory = this.memory.get(index)!;
    this.provider.gpu.write(memory.buffer, memory.offset + offset, bytes);
  }

  destroy(): void {
    for (const id of this.ids.values()) this.provider.buffers.free(id);
    for (const buffer of this.buffers) buffer.destroy();
  }
}

/** Fetches the blob once and gives each weight its bytes. */
export async function loadWeights(
  url: string, size: number, weights: readonly PlanWeight[], core: Core, session: number, gpu: GpuWeights | undefined,
  progress: (done: number, total: number) => void,
): Promise<void> {
  const sinks = weights
    .filter((weight) => weight.size > 0)
    .map((weight) => ({ start: weight.offset, end: weight.offset + weight.size, take: sinkOf(weight, core, session, gpu) }))
    .sort((a, b) => a.start - b.start);
  let done = 0;
  await downloadChunks(url, size, (offset, bytes) => {
    for (let i = firstEndingAfter(sinks, offset); i < sinks.length && sinks[i].start < offset + bytes.byteLength; i++) {
      const { start, end, take } = sinks[i];
      const from = Math.max(start, offset);
      take(from - start, bytes.subarray(from - offset, Math.min(end, offset + bytes.byteLength) - offset));
    }
    done += bytes.byteLength;
    progress(done, size);
  });
}

/** Takes a weight's bytes, piece by piece, with their offset in the weight. */
function sinkOf(weight: PlanWeight, core: Core, session: number, gpu: GpuWeights | undefined): (offset: number, piece: Uint8Array) => void {
  const { index, dtype, size } = weight;
  const address = weight.onCpu ? core.weightAddress(session, index) : 0;
  if (weight.onCpu && address === 0) throw new Error(`the core has no place for weight ${index}`);
  const sinks: ((offset: number, piece: Uint8Array) => void)[] = [];
  if (address) sinks.push((offset, piece) => core.heap.set(piece, address + offset));
  if (weight.onGpu && gpu) {
    const { elements } = gpu.provider.gpu;
    if (elements.same(dtype)) {
      sinks.push((offset, piece) => gpu.write(index, offset, piece));
    } else {
      // Elements that become wider are gathered first: pieces may end within one.
      const whole = new Uint8Array(size);
      let missing = size;
      sinks.push((offset, piece) => {
        whole.set(piece, offset);
        missing -= piece.byteLength;
        if (missing === 0) gpu.write(index, 0, elements.widen(dtype, whole));
      });
    }
  }
  return (offset, piece) => sinks.forEach((sink) => sink(offset, piece));
}

function firstEndingAfter(sinks: readonly { readonly end: number }[], offset: number): number {
  let [low, high] = [0, sinks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sinks[middle].end > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
