// Weights by identity: sessions of one model, and plans for different shapes of it, share the same bytes. A weight is
// added when all of its bytes are there, and removed with its last owner.
import type { Core } from '../core/core';
import type { TensorMemory } from '../device/buffers';
import { roundUp, storageBytes } from '../device/memory_plan';
import type { DeviceProvider } from '../device/provider';

/** New weights share buffers of at most this size; larger weights have their own. */
const PACK_BYTES = 256 << 20;
const OFFSET_ALIGNMENT = 256;

/** A GPU buffer with weights in it. */
interface Pack {
  readonly buffer: ReturnType<DeviceProvider['makeMemory']>;
  users: number;
}

/** A weight on the GPU. */
export interface GpuWeight {
  readonly key: string;
  readonly memory: TensorMemory;
  readonly pack: Pack;
  holders: number;
}

/** The weights of one device. */
export class GpuWeightStore {
  private static readonly stores = new WeakMap<DeviceProvider, GpuWeightStore>();
  private readonly known = new Map<string, GpuWeight>();
  /** Bytes of all its buffers. */
  bytes = 0;

  static of(provider: DeviceProvider): GpuWeightStore {
    const store = GpuWeightStore.stores.get(provider) ?? new GpuWeightStore(provider);
    GpuWeightStore.stores.set(provider, store);
    return store;
  }

  private constructor(private readonly provider: DeviceProvider) {}

  /** A weight of this size that is already there, with one more owner. "" is no key. */
  share(key: string, bytes: number): GpuWeight | undefined {
    const weight = key ? this.known.get(key) : undefined;
    if (weight?.memory.bytes !== bytes) return undefined;
    weight.holders++;
    return weight;
  }

  /** Allocates weights. The caller writes their bytes and then announces them. */
  make(wanted: readonly { readonly key: string; readonly bytes: number }[]): GpuWeight[] {
    const places: { pack: number; offset: number }[] = [];
    const sizes: number[] = [];
    const limit = Math.min(PACK_BYTES, this.provider.limits.buffer);
    for (const { bytes } of wanted) {
      const place = roundUp(storageBytes(bytes), OFFSET_ALIGNMENT);
      if (sizes.length === 0 || sizes[sizes.length - 1] + place > limit) sizes.push(0);
      places.push({ pack: sizes.length - 1, offset: sizes[sizes.length - 1] });
      sizes[sizes.length - 1] += place;
    }
    const packs = sizes.map((size): Pack => ({ buffer: this.provider.makeMemory('weights', size), users: 0 }));
    this.bytes += sizes.reduce((sum, size) => sum + size, 0);
    return wanted.map(({ key, bytes }, i): GpuWeight => {
      const pack = packs[places[i].pack];
      pack.users++;
      return {
        key,
        pack,
        memory: { buffer: pack.buffer, offset: places[i].offset, bytes, constant: true },
        holders: 1,
      };
    });
  }

  /** All bytes of the weight are written: others may share it. */
  announce(weight: GpuWeight): void {
    if (weight.key && !this.known.has(weight.key)) this.known.set(weight.key, weight);
  }

  release(weight: GpuWeight): void {
    if (--weight.holders > 0) return;
    if (this.known.get(weight.key) === weight) this.known.delete(weight.key);
    if (--weight.pack.users > 0) return;
    this.bytes -= weight.pack.buffer.size;
    weight.pack.buffer.destroy();
  }
}

/** A weight in the heap, in a session of the core. */
interface HeapWeight {
  readonly session: number;
  readonly index: number;
}

/** The weights in the heap of one core. The core itself frees them with the last session that reads them. */
export class HeapWeightStore {
  private static readonly stores = new WeakMap<Core, HeapWeightStore>();
  private readonly known = new Map<string, HeapWeight[]>();

  static of(core: Core): HeapWeightStore {
    const store = HeapWeightStore.stores.get(core) ?? new HeapWeightStore();
    HeapWeightStore.stores.set(core, store);
    return store;
  }

  /** A session that has the weight. */
  find(key: string): HeapWeight | undefined {
    return key ? this.known.get(key)?.[0] : undefined;
  }

  announce(key: string, weight: HeapWeight): void {
    if (key) this.known.set(key, [...(this.known.get(key) ?? []), weight]);
  }

  release(session: number): void {
    for (const [key, holders] of this.known) {
      const others = holders.filter((holder) => holder.session !== session);
      if (others.length > 0) this.known.set(key, others);
      else this.known.delete(key);
    }
  }
}
