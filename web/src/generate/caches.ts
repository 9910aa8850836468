// The keys and values that a decoder has made: a step's feeds from them, and the use of its outputs. On the CPU they
// are bytes; on devices they stay there.
import type { Feeds } from '../session/feeds';
import type { RunOptions } from '../session/run_options';
import type { TensorOnCpu, Value } from '../wire/values';
import type { CacheForm, DecoderForm } from './decoder_form';
import { cpuElementSize } from './outside';

export interface Caches {
  /** The number of filled slots in each row. */
  readonly slots: number;
  /** Makes room for this number of slots, before a prompt. */
  reserve(slots: number): void;
  feeds(): Feeds;
  /** Options of a run for its outputs. */
  readonly options: Pick<RunOptions, 'outputs' | 'outputsOnGpu' | 'bind'>;
  /** Call after a run that filled `count` more slots. */
  advance(count: number, outputs: { readonly [name: string]: Value }): void;
  /** Forgets the slots after the first ones. */
  cut(slots: number): void;
  /** Makes a row for each of `rows`, as a copy of that row. */
  select(rows: readonly number[]): void;
  release(): void;
}

export function cacheDims({ heads, size }: CacheForm, batch: number, slots: number): number[] {
  return [batch, heads, slots, size];
}

/** True if a selection of rows is all rows in order. */
export function unchanged(rows: readonly number[], batch: number): boolean {
  return rows.length === batch && rows.every((row, i) => row === i);
}

/** On the CPU. Caches of a `shared` form are exactly as long as their contents, to avoid copies. */
export class HostCaches implements Caches {
  slots = 0;
  private tensors: TensorOnCpu[];

  constructor(
    private readonly form: DecoderForm,
    private batch: number,
  ) {
    this.tensors = form.caches.map((cache) => {
      const dims = cacheDims(cache, batch, form.capacity ?? 0);
      return { dtype: cache.dtype, dims, data: new Uint8Array(rowBytes(cache) * dims[0] * dims[1] * dims[2]) };
    });
  }

  reserve(): void {}

  feeds(): Feeds {
    return Object.fromEntries(this.form.caches.map(({ input }, i) => [input, this.tensors[i]]));
  }

  get options(): Pick<RunOptions, 'outputs'> {
    return { outputs: [this.form.logits, ...this.form.caches.map(({ output }) => output)] };
  }

  advance(count: number, outputs: { readonly [name: string]: Value }): void {
    this.tensors = this.form.caches.map(({ output }) => outputs[output] as TensorOnCpu);
    this.slots += count;
  }

  cut(slots: number): void {
    if (this.form.growth !== 'fixed' && slots < this.slots)
      this.tensors = this.tensors.map((tensor, i) => this.firstSlots(tensor, this.form.caches[i], slots));
    this.slots = slots;
  }

  select(rows: readonly number[]): void {
    if (unchanged(rows, this.batch)) return;
    this.batch = rows.length;
    this.tensors = this.tensors.map(({ dtype, dims, data }) => {
      const size = data.length / dims[0];
      const selected = new Uint8Array(rows.length * size);
      rows.forEach((row, i) => selected.set(data.subarray(row * size, (row + 1) * size), i * size));
      return { dtype, dims: [rows.length, ...dims.slice(1)], data: selected };
    });
  }

  release(): void {
    this.tensors = [];
  }

  private firstSlots({ dtype, dims, data }: TensorOnCpu, cache: CacheForm, slots: number): TensorOnCpu {
    const [before, after] = [dims[2], slots].map((count) => count * rowBytes(cache));
    const heads = dims[0] * dims[1];
    const cut = new Uint8Array(heads * after);
    for (let head = 0; head < heads; head++) cut.set(data.subarray(head * before, head * before + after), head * after);
    return { dtype, dims: cacheDims(cache, this.batch, slots), data: cut };
  }
}

/** Bytes of one slot of one head. */
function rowBytes({ dtype, size }: CacheForm): number {
  return size * cpuElementSize(dtype)!;
}
