// Caches in GPU buffers. Growing caches are new buffers after each step. The others are buffers with room for the
// maximal length, which are inputs and bound outputs at the same time, so that kernels write the new slots in place.
import type { GpuSession } from '../gpu_session';
import type { Feeds } from '../../../session/feeds';
import type { RunOptions } from '../../../session/run_options';
import type { TensorOnGpu, Value } from '../../../wire/values';
import { cacheDims, type Caches, unchanged } from '../../../generate/caches';
import type { CacheForm, DecoderForm } from '../../../generate/decoder_form';
import { ErrorCode, RuntimeError, named } from '../../../generate/outside';

/** Buffers have room for multiples of this number of slots: a slightly longer text needs no new ones. */
const STEP = 256;

interface RowPlace {
  readonly id: number;
  readonly row: number;
}

export class GpuCaches implements Caches {
  slots = 0;
  /** Slots with room. */
  private room = 0;
  private tensors: TensorOnGpu[] | undefined;

  constructor(
    private readonly form: DecoderForm,
    private batch: number,
    private readonly gpu: GpuSession,
  ) {}

  private get inPlace(): boolean {
    return this.form.growth !== 'grows';
  }

  reserve(slots: number): void {
    if (!this.inPlace || (this.tensors && slots <= this.room)) return;
    this.resize(this.form.capacity ?? Math.ceil(slots / STEP) * STEP);
  }

  feeds(): Feeds {
    const { form, tensors, batch } = this;
    if (tensors) return Object.fromEntries(form.caches.map(({ input }, i) => [input, tensors[i]]));
    const none = new Uint8Array(0);
    return Object.fromEntries(
      form.caches.map((cache) => [cache.input, { dtype: cache.dtype, dims: cacheDims(cache, batch, 0), data: none }]),
    );
  }

  get options(): Pick<RunOptions, 'outputs' | 'outputsOnGpu' | 'bind'> {
    const { form, tensors } = this;
    const names = form.caches.map(({ output }) => output);
    const bind = this.inPlace && tensors ? Object.fromEntries(names.map((name, i) => [name, tensors[i]])) : {};
    return { outputs: [form.logits, ...names], outputsOnGpu: [form.logits, ...names], bind };
  }

  advance(count: number, outputs: { readonly [name: string]: Value }): void {
    this.slots += count;
    if (this.inPlace) return;
    const made = this.form.caches.map(({ output }) => named(outputs, output) as TensorOnGpu);
    this.replace(made, this.slots);
  }

  cut(slots: number): void {
    this.slots = Math.min(slots, this.slots);
    if (this.inPlace || !this.tensors || this.slots === this.room) return;
    if (this.slots === 0) this.release();
    else this.resize(this.slots);
  }

  select(rows: readonly number[]): void {
    if (unchanged(rows, this.batch)) return;
    if (this.inPlace && this.tensors && rows.length === this.batch) this.move(rows);
    else this.copy(rows);
  }

  /** Copies rows to new buffers. */
  private copy(rows: readonly number[]): void {
    const { form, room, tensors, gpu } = this;
    const { gpu: device } = gpu.provider;
    const encoder = device.device.createCommandEncoder();
    const made = tensors && this.allocate(rows.length, room);
    made?.forEach(({ gpuId }, i) => {
      const bytes = form.caches[i].heads * room * this.rowBytes(form.caches[i]);
      const id = tensors![i].gpuId;
      rows.forEach((row, to) => this.copyRow(encoder, { id, row }, { id: gpuId, row: to }, bytes));
    });
    device.submit([encoder.finish()]);
    this.batch = rows.length;
    this.replace(made, room);
  }

  /** Moves rows within their buffers, with which runs were recorded, by way of another buffer. */
  private move(rows: readonly number[]): void {
    const { form, room, gpu } = this;
    const { buffers, caches, gpu: device } = gpu.provider;
    const encoder = device.device.createCommandEncoder();
    const moves = rows.map((from, to) => ({ from, to })).filter(({ from, to }) => from !== to);
    const sizes = form.caches.map((cache) => cache.heads * room * this.rowBytes(cache));
    const between = buffers.allocate(moves.length * Math.max(...sizes), caches.storage, 'rows of caches');
    this.tensors!.forEach(({ gpuId: id }, i) => {
      moves.forEach(({ from }, k) => this.copyRow(encoder, { id, row: from }, { id: between, row: k }, sizes[i]));
      moves.forEach(({ to }, k) => this.copyRow(encoder, { id: between, row: k }, { id, row: to }, sizes[i]));
    });
    device.submit([encoder.finish()]);
    buffers.free(between);
  }

  private copyRow(encoder: GPUCommandEncoder, from: RowPlace, to: RowPlace, bytes: number): void {
    const [source, target] = [from, to].map(({ id }) => this.gpu.provider.buffers.get(id));
    const [start, end] = [source.offset + from.row * bytes, target.offset + to.row * bytes];
    encoder.copyBufferToBuffer(source.buffer, start, target.buffer, end, bytes);
  }

  release(): void {
    this.replace(undefined, 0);
    this.slots = 0;
  }

  /** Copies the filled slots to buffers of this size. */
  private resize(room: number): void {
    const { form, batch, tensors, gpu } = this;
    const { buffers, gpu: device } = gpu.provider;
    const encoder = device.device.createCommandEncoder();
    const made = this.allocate(batch, room);
    tensors?.forEach(({ gpuId }, i) => {
      const cache = form.caches[i];
      const heads = { count: batch * cache.heads, rowBytes: this.rowBytes(cache) };
      const [from, to] = [buffers.get(gpuId), buffers.get(made[i].gpuId)];
      gpu.tools.copyRows(encoder, heads, Math.min(this.slots, room), [from, this.room], [to, room]);
    });
    device.submit([encoder.finish()]);
    this.replace(made, room);
  }

  /** Allocates caches of zeros: all of them, or none. */
  private allocate(batch: number, room: number): TensorOnGpu[] {
    const { buffers, caches } = this.gpu.provider;
    const made: TensorOnGpu[] = [];
    try {
      for (const cache of this.form.caches) {
        const bytes = batch * cache.heads * room * this.rowBytes(cache);
        const gpuId = buffers.allocate(bytes, caches.storage, cache.input, true);
        made.push({ dtype: cache.dtype, dims: cacheDims(cache, batch, room), gpuId });
      }
      return made;
    } catch (error) {
      for (const { gpuId } of made) buffers.free(gpuId);
      throw error;
    }
  }

  private replace(tensors: TensorOnGpu[] | undefined, room: number): void {
    for (const { gpuId } of this.tensors ?? []) this.gpu.provider.buffers.free(gpuId);
    this.tensors = tensors;
    this.room = room;
  }

  private rowBytes({ input, dtype, size }: CacheForm): number {
    const bytes = size * this.gpu.provider.gpu.elements.size(dtype);
    if (bytes % 4 === 0) return bytes;
    throw new RuntimeError(ErrorCode.not_implemented, `input "${input}": heads of ${bytes} bytes, no multiple of 4`);
  }
}
