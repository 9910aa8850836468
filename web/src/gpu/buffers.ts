// GPU memory that outlives runs: weights, device tensors of IO binding, outputs left on the GPU.
// Ids count up from 1 and are not used twice.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import type { Gpu } from './device';
import { storageBytes } from './memory_plan';
import type { Placement } from './segment';

/** Ids from here on are virtual: they belong to a run (jsep/recorder.ts). */
export const FIRST_VIRTUAL_ID = 0x40000000;

export interface GpuTensorMemory extends Placement {
  /** Bytes asked for. */
  readonly bytes: number;
  /** Several tensors may share a buffer (weights); only the owner's release destroys it. */
  readonly shared: boolean;
}

// COPY_SRC | COPY_DST | STORAGE by number: modules must load where there is no WebGPU (the build, unit tests).
const STORAGE_USAGE = 0x4 | 0x8 | 0x80;

export function createStorageBuffer(gpu: Gpu, bytes: number, label: string): GPUBuffer {
  return gpu.createBuffer({ label, size: storageBytes(bytes), usage: STORAGE_USAGE });
}

/** Counts for all devices of the page: an id names its device too. */
let nextId = 1;

export class BufferTable {
  private readonly memory = new Map<number, GpuTensorMemory>();

  constructor(private readonly gpu: Gpu) {}

  allocate(bytes: number, label = 'tensor'): number {
    const buffer = createStorageBuffer(this.gpu, bytes, label);
    return this.add({ buffer, offset: 0, bytes, shared: false });
  }

  add(memory: GpuTensorMemory): number {
    this.memory.set(nextId, memory);
    return nextId++;
  }

  has(id: number): boolean {
    return this.memory.has(id);
  }

  get(id: number): GpuTensorMemory {
    const memory = this.memory.get(id);
    if (!memory) {
      throw new RuntimeError(ErrorCode.invalid_argument, `there is no GPU buffer ${id}: it was freed, or belongs to a lost device`);
    }
    return memory;
  }

  free(id: number): void {
    const memory = this.memory.get(id);
    this.memory.delete(id);
    if (memory && !memory.shared) memory.buffer.destroy();
  }

  /** Bytes in buffers that this table owns. */
  get bytes(): number {
    let sum = 0;
    for (const { shared, bytes } of this.memory.values()) if (!shared) sum += bytes;
    return sum;
  }
}
