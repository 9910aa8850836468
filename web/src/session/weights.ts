// Transfers a session's weights from the network to their places: the core's heap, GPU buffers, or both. Each is
// fetched once; weights that another session of the page has are not fetched.
import { ErrorCode } from '../schema';
import type { Core } from '../core/core';
import { RuntimeError } from '../errors';
import type { DeviceProvider } from '../device/provider';
import { elementCount } from '../contract/elements';
import { scatterIntoPanels } from '../package/forms';
import { Form } from '../package/header';
import type { ModelSource, WeightSource } from './model_source';
import type { PlanInfo, PlanWeight } from './plan';
import { type GpuWeight, GpuWeightStore, HeapWeightStore } from './weight_store';

/** Receives a weight's bytes, piece by piece, with their offset in the weight. */
type Sink = (offset: number, piece: Uint8Array) => void;

/** The most reports of progress: pieces come by the thousand. */
const STEPS = 100;

export class SessionWeights {
  private readonly onDevices: { readonly provider: DeviceProvider; readonly weight: GpuWeight; readonly id: number }[] =
    [];
  /** Bytes in the heap that this session's plan reads, and how many of them were already there. */
  readonly bytes = { heap: 0, sharedInHeap: 0 };
  private readonly onDevice = new Map<DeviceProvider, { bytes: number; shared: number }>();

  private constructor(
    private readonly source: ModelSource,
    private readonly core: Core,
    private readonly session: number,
  ) {}

  /**
   * Loads the weights of a plan whose session the core has just made.
   * @param devices by the index of their providers in the plan.
   */
  static async load(
    source: ModelSource,
    plan: PlanInfo,
    core: Core,
    session: number,
    devices: readonly (DeviceProvider | undefined)[],
    progress: (done: number, total: number) => void,
  ): Promise<SessionWeights> {
    const loaded = new SessionWeights(source, core, session);
    try {
      plan.weights.forEach((weight) => ensureFits(source, weight));
      const sinks = new Map<PlanWeight, Sink[]>();
      devices.forEach((provider, i) => {
        const there = plan.weights.filter(({ device }) => device === i);
        if (provider && there.length > 0) loaded.placeOnDevice(provider, there, sinks);
      });
      loaded.placeInHeap(
        plan.weights.filter(({ onCpu, size }) => onCpu && size > 0),
        sinks,
      );
      for (const [weight, take] of sinks) {
        const check = source.check?.(weight, core.crc32);
        if (check) take.unshift(check);
      }
      await fetchInto(source, plan.weightsSize, sinks, progress);
      loaded.announce(plan.weights);
      return loaded;
    } catch (error) {
      loaded.release();
      throw error;
    }
  }

  /** The same on a device. */
  on(provider: DeviceProvider): { readonly bytes: number; readonly shared: number } {
    return this.onDevice.get(provider) ?? { bytes: 0, shared: 0 };
  }

  private placeOnDevice(
    provider: DeviceProvider,
    weights: readonly PlanWeight[],
    sinks: Map<PlanWeight, Sink[]>,
  ): void {
    const { buffers, elements } = provider;
    const store = GpuWeightStore.of(provider);
    const use = { bytes: 0, shared: 0 };
    this.onDevice.set(provider, use);
    const take = (weight: PlanWeight, held: GpuWeight) => {
      const id = buffers.add(held.memory);
      this.onDevices.push({ provider, weight: held, id });
      use.bytes += held.memory.bytes;
      this.core.weightOnDevice(this.session, weight.index, id);
    };
    const bytes = ({ dims, dtype }: PlanWeight) => elementCount(dims) * elements.size(dtype);
    const missing = weights.filter((weight) => {
      const held = store.share(weight.key, bytes(weight));
      if (!held) return true;
      take(weight, held);
      use.shared += held.memory.bytes;
      return false;
    });
    const made = store.make(missing.map((weight) => ({ key: weight.key, bytes: bytes(weight) })));
    missing.forEach((weight, i) => {
      take(weight, made[i]);
      if (weight.size > 0) addSink(sinks, weight, this.deviceSink(provider, weight, made[i]));
    });
  }

  private placeInHeap(weights: readonly PlanWeight[], sinks: Map<PlanWeight, Sink[]>): void {
    const store = HeapWeightStore.of(this.core);
    for (const weight of weights) {
      this.bytes.heap += weight.size;
      const holder = store.find(weight.key);
      if (holder) {
        this.core.shareWeight(this.session, weight.index, holder.session, holder.index);
        this.bytes.sharedInHeap += weight.size;
        continue;
      }
      const address = this.core.weightAddress(this.session, weight.index);
      if (address === 0) {
        const text = `no memory for a weight of ${weight.size} bytes (${this.bytes.heap} bytes of weights so far)`;
        throw new RuntimeError(ErrorCode.out_of_memory, text);
      }
      addSink(sinks, weight, this.heapSink(weight, address));
    }
  }

  private heapSink(weight: PlanWeight, address: number): Sink {
    const place = this.source.place(weight);
    if (place.form === Form.asIs) return (offset, piece) => this.core.heap.set(piece, address + offset);
    return scatterIntoPanels(place, weight, () => this.core.view(address, weight.size));
  }

  private deviceSink(
    provider: DeviceProvider,
    weight: PlanWeight,
    { memory: { buffer, offset: start } }: GpuWeight,
  ): Sink {
    const { elements } = provider;
    const place = this.source.place(weight);
    if (place.form === Form.asIs && elements.same(weight.dtype))
      return (offset, piece) => provider.write({ buffer, offset: start + offset }, piece);
    // Elements that become wider are collected first: pieces may end within an element.
    const whole = new Uint8Array(weight.size);
    const gather: Sink =
      place.form === Form.asIs
        ? (offset, piece) => whole.set(piece, offset)
        : scatterIntoPanels(place, weight, () => whole);
    let missing = place.size;
    return (offset, piece) => {
      gather(offset, piece);
      missing -= piece.byteLength;
      if (missing > 0) return;
      provider.write(
        { buffer, offset: start },
        elements.same(weight.dtype) ? whole : elements.widen(weight.dtype, whole),
      );
    };
  }

  /** All bytes are there. */
  private announce(weights: readonly PlanWeight[]): void {
    for (const { provider, weight } of this.onDevices) GpuWeightStore.of(provider).announce(weight);
    for (const { index, key, onCpu, size } of weights) {
      if (onCpu && size > 0) HeapWeightStore.of(this.core).announce(key, { session: this.session, index });
    }
  }

  release(): void {
    HeapWeightStore.of(this.core).release(this.session);
    for (const { provider, weight, id } of this.onDevices) {
      provider.buffers.free(id);
      GpuWeightStore.of(provider).release(weight);
    }
    this.onDevices.length = 0;
  }
}

/** The size of other forms is checked where they are read. */
function ensureFits(source: ModelSource, weight: PlanWeight): void {
  const place: WeightSource | undefined = source.place(weight);
  if (!place || (place.form === Form.asIs && place.size !== weight.size)) {
    throw new RuntimeError(
      ErrorCode.invalid_graph,
      `weight ${weight.index} of ${weight.size} bytes has ${place?.size ?? 'no place'} in the file, which is ` +
        'damaged: export the model again',
    );
  }
}

function addSink(sinks: Map<PlanWeight, Sink[]>, weight: PlanWeight, sink: Sink): void {
  const known = sinks.get(weight);
  if (known) known.push(sink);
  else sinks.set(weight, [sink]);
}

/** Fetches the needed parts of the blob and passes each weight its bytes. */
async function fetchInto(
  source: ModelSource,
  size: number,
  sinks: ReadonlyMap<PlanWeight, Sink[]>,
  progress: (done: number, total: number) => void,
): Promise<void> {
  const wanted = [...sinks]
    .map(([weight, take]) => ({ ...source.place(weight), take }))
    .map(({ offset, size: bytes, take }) => ({ start: offset, end: offset + bytes, take }))
    .sort((a, b) => a.start - b.start);
  // Two weights of a plan may be in one place of the blob.
  const reach = wanted.map(({ end }) => end);
  for (let i = 1; i < reach.length; i++) reach[i] = Math.max(reach[i], reach[i - 1]);
  let [done, told] = [0, 0];
  const total = wanted.reduce((sum, { start, end }) => sum + end - start, 0);
  // After one range has failed, the bytes of others have no place any more.
  let over = false;
  await source
    .download(size, wanted, (offset, bytes) => {
      if (over) return;
      for (let i = firstAbove(reach, offset); i < wanted.length && wanted[i].start < offset + bytes.byteLength; i++) {
        const { start, end, take } = wanted[i];
        const [from, to] = [Math.max(start, offset), Math.min(end, offset + bytes.byteLength)];
        if (from >= to) continue;
        const piece = bytes.subarray(from - offset, to - offset);
        for (const sink of take) sink(from - start, piece);
        done += to - from;
      }
      if (done < total && done - told < total / STEPS) return;
      told = done;
      progress(done, total);
    })
    .catch((error: unknown) => {
      over = true;
      throw error;
    });
}

/** The first index whose number is above `value`; numbers ascend. */
function firstAbove(numbers: readonly number[], value: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
