// Values between JavaScript's tensors and those of sessions.
import { ValueKind } from '../schema';
import { storageBytes } from '../gpu/memory_plan';
import type { GpuProvider } from '../gpu/provider';
import { elementCount } from '../contract/elements';
import { isContainer, isOnGpu, type TensorOnGpu, type Value } from '../wire/values';
import type { TensorKeeper } from './keeper';
import { LocalKeeper } from './local_keeper';
import { dtypeOfType, fromBytes, invalid, toBytes, typeOfDtype } from './elements';
import { isOnCpu, keptBy, keptTensor, Tensor } from './tensor';

/** An array for a sequence, null for an optional without an element. */
export type OnnxValue = Tensor | readonly OnnxValue[] | null;
export type OnnxValues = { readonly [name: string]: OnnxValue };

/** What one run lends to its session: buffers of the caller's. */
export class Loans {
  private readonly lent: number[] = [];

  /** @param keeper of the session's tensors; undefined where no node runs on a GPU. */
  constructor(private readonly keeper: TensorKeeper | undefined) {}

  feeds(feeds: OnnxValues): { [name: string]: Value } {
    const given = Object.entries(feeds).filter(([, value]) => value !== null);
    return Object.fromEntries(given.map(([name, value]) => [name, this.feed(`input "${name}"`, value)]));
  }

  /** The places of outputs on the GPU. */
  places(targets: { readonly [name: string]: Tensor | null }): { [name: string]: TensorOnGpu } {
    const found = Object.entries(targets).filter(([, tensor]) => tensor && !isOnCpu(tensor));
    return Object.fromEntries(
      found.map(([name, tensor]) => [name, this.onGpu(`the tensor for output "${name}"`, tensor!)]),
    );
  }

  giveBack(): void {
    for (const id of this.lent.splice(0)) this.provider?.buffers.giveBack(id);
  }

  private get provider(): GpuProvider | undefined {
    return this.keeper instanceof LocalKeeper ? this.keeper.provider : undefined;
  }

  private feed(what: string, value: OnnxValue): Value {
    if (value instanceof Tensor) return value.location === 'gpu-buffer' ? this.onGpu(what, value) : onCpu(what, value);
    if (!Array.isArray(value)) throw invalid(`${what} takes a Tensor, or an array of them`);
    const items = (value as readonly OnnxValue[]).map((item, i) => this.feed(`${what}[${i}]`, item));
    return { kind: ValueKind.sequence, dtype: items[0]?.dtype ?? 0, items };
  }

  private onGpu(what: string, tensor: Tensor): TensorOnGpu {
    const { type, dims } = tensor;
    const dtype = dtypeOfType(type);
    const kept = keptBy(tensor);
    if (kept && (kept.keeper === this.keeper || kept.keeper.buffer)) return { dtype, dims, gpuId: kept.gpuId };
    if (kept) throw invalid(`${what} is on the GPU of another session's worker: take it to the CPU with getData`);
    const { provider } = this;
    if (!provider) {
      throw invalid(
        this.keeper
          ? `${what} is a GPU buffer of the page, and this session runs in a worker: set env.wasm.proxy = false`
          : `${what} is a buffer of your own, and no node of this session runs on a GPU`,
      );
    }
    const { gpuBuffer } = tensor;
    checkBuffer(what, tensor, gpuBuffer, storageBytes(elementCount(dims) * provider.gpu.elements.size(dtype)));
    const id = provider.buffers.lend(gpuBuffer);
    this.lent.push(id);
    return { dtype, dims, gpuId: id };
  }
}

/** An output as a tensor; written into `target`, if there is one. */
export function result(value: Value, name: string, keeper: TensorKeeper | undefined, target?: Tensor): OnnxValue {
  if (target && !isOnCpu(target)) return target;
  if (isContainer(value)) {
    if (target) throw invalid(`output "${name}" is no tensor: nothing can be bound to it`);
    const items = value.items.map((item) => result(item, name, keeper));
    return value.kind === ValueKind.sequence ? items : (items[0] ?? null);
  }
  const type = typeOfDtype(value.dtype);
  if (isOnGpu(value)) return keptTensor(type, value.dims, keeper!, value.gpuId);
  const data = fromBytes(type, value.data);
  if (!target) return new Tensor(type, data, value.dims);
  if (target.type !== type || String(target.dims) !== String(value.dims)) {
    throw invalid(`output "${name}" is ${type}[${value.dims}]; the tensor for it is ${target.type}[${target.dims}]`);
  }
  if (Array.isArray(data))
    data.forEach((text, i) => {
      (target.data as string[])[i] = text;
    });
  else (target.data as Uint8Array).set(data as Uint8Array);
  return target;
}

function onCpu(what: string, tensor: Tensor): Value {
  if (tensor.location === 'none') throw invalid(`${what} was disposed of`);
  return { dtype: dtypeOfType(tensor.type), dims: tensor.dims, data: toBytes(tensor.data) };
}

function checkBuffer(what: string, { type, dims }: Tensor, { size, usage }: GPUBuffer, bytes: number): void {
  const missing = (['STORAGE', 'COPY_SRC', 'COPY_DST'] as const).filter((name) => !(usage & GPUBufferUsage[name]));
  if (missing.length > 0) throw invalid(`${what}: its buffer lacks the usage ${missing.join(', ')}`);
  if (size < bytes || size % 16 !== 0) {
    throw invalid(
      `${what}: ${type}[${dims}] needs a buffer of ${bytes} bytes, or more in steps of 16; this one has ${size}`,
    );
  }
}
