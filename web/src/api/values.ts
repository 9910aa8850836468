// Conversion between JavaScript's tensors and values of sessions.
import { ValueKind } from '../schema';
import { isContainer, isOnGpu, type TensorOnGpu, type Value } from '../wire/values';
import type { RunResult } from '../session/run_options';
import type { Engine } from './engine';
import { HERE, type Loan, type TensorKeeper } from '../device/keeper';
import { dtypeOfType, fromBytes, toBytes, typeOfDtype } from './elements';
import { invalid } from '../errors';
import { isOnCpu, isOnDevice, keptBy, keptTensor, resourceOf, Tensor } from './tensor';

/** An array for a sequence, null for an optional without an element. */
export type OnnxValue = Tensor | readonly OnnxValue[] | null;
export type OnnxValues = { readonly [name: string]: OnnxValue };

/** True for a tensor, also of another copy of the package: those have the same members. */
export function isTensor(value: unknown): value is Tensor {
  return value instanceof Tensor || 'dims' in Object(value);
}

/** A value with tensors of this copy of the package. They share the elements of those of other copies. */
export function adopted<V extends OnnxValue>(value: V): V;
export function adopted(value: OnnxValue): OnnxValue {
  if (Array.isArray(value)) return value.map((item: OnnxValue) => adopted(item));
  if (value instanceof Tensor || !isTensor(value)) return value;
  const { type, dims, location } = value;
  if (!isOnDevice(value)) return new Tensor(type, value.data, dims);
  const own = { type: type as 'float32', dims };
  if (location === 'ml-tensor') return new Tensor({ location, ...own, mlTensor: value.mlTensor });
  return new Tensor({ location: 'gpu-buffer', ...own, gpuBuffer: value.gpuBuffer });
}

/** The callers' tensors on devices that one run lends to its session. */
export class Loans {
  private readonly lent: Loan[] = [];

  /** @param engine the session's engine. */
  constructor(private readonly engine: Pick<Engine, 'thread' | 'keeper'>) {}

  feeds(feeds: OnnxValues): { [name: string]: Value } {
    const given = Object.entries(feeds).filter(([, value]) => value !== null);
    return Object.fromEntries(given.map(([name, value]) => [name, this.feed(`input "${name}"`, value)]));
  }

  /** The places of outputs on the device. Those on the CPU are checked. */
  places(targets: { readonly [name: string]: Tensor | null }): { [name: string]: TensorOnGpu } {
    const found = Object.entries(targets).flatMap(([name, tensor]) => (tensor ? [[name, tensor] as const] : []));
    for (const [name, tensor] of found) if (isOnCpu(tensor)) ensureData(placeOf(name), tensor);
    const onDevice = found.filter(([, tensor]) => !isOnCpu(tensor));
    return Object.fromEntries(onDevice.map(([name, tensor]) => [name, this.onDevice(placeOf(name), tensor, true)]));
  }

  /** The run has succeeded: makes its outputs visible to the page. */
  deliver(): void {
    for (const { deliver } of this.lent) deliver?.();
  }

  /** The tensors are lent until the work ends. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      this.giveBack();
    }
  }

  private giveBack(): void {
    for (const { giveBack } of this.lent.splice(0)) giveBack?.();
  }

  private feed(what: string, value: OnnxValue): Value {
    if (value instanceof Tensor) return isOnDevice(value) ? this.onDevice(what, value, false) : onCpu(what, value);
    if (!Array.isArray(value)) throw invalid(`${what} takes a Tensor, or an array of them`);
    const items = (value as readonly OnnxValue[]).map((item, i) => this.feed(`${what}[${i}]`, item));
    return { kind: ValueKind.sequence, dtype: items[0]?.dtype ?? 0, items };
  }

  /** @param written true if the run writes it. */
  private onDevice(what: string, tensor: Tensor, written: boolean): TensorOnGpu {
    const { type, dims } = tensor;
    const dtype = dtypeOfType(type);
    const kept = keptBy(tensor);
    const { keeper, thread } = this.engine;
    if (kept && kept.keeper.thread !== thread)
      throw invalid(`${what} is on a device of another thread (env.wasm.proxy): await getData()`);
    if (!kept && !(keeper?.lend && keeper.location === tensor.location)) {
      const takes = keeper ? `takes none but a ${keeper.location}` : 'takes tensors on the CPU only';
      throw invalid(`${what} is a ${tensor.location} of your own, and this session ${takes}`);
    }
    const loan = kept
      ? { gpuId: kept.gpuId, ...kept.keeper.use?.(kept.gpuId, dtype, dims, written) }
      : keeper!.lend!(resourceOf(tensor), dtype, dims, written, `${what}: ${type}[${dims}]`);
    this.lent.push(loan);
    return { dtype, dims, gpuId: loan.gpuId };
  }
}

/** The same feed with elements of its own: the caller may change or transfer the array after the call. */
export function taken(value: OnnxValue): OnnxValue {
  if (Array.isArray(value)) return value.map(taken);
  if (!(value instanceof Tensor && isOnCpu(value) && value.data.length === value.size)) return value;
  return new Tensor(value.type, value.data.slice(), value.dims);
}

/** The tensors on devices among a run's values. */
export function onDeviceOf(values: readonly OnnxValue[]): Tensor[] {
  return values.flatMap((value) => {
    if (value instanceof Tensor) return isOnDevice(value) ? [value] : [];
    return Array.isArray(value) ? onDeviceOf(value) : [];
  });
}

/** The thread that owns the tensor. */
export function threadOf(tensor: Tensor): object {
  return keptBy(tensor)?.keeper.thread ?? HERE;
}

/**
 * True if a run must wait for a feed's elements: they are on a device of another thread, or 64-bit integers in one of
 * the page's buffers, which nodes on the CPU read whole.
 */
export function isFetched(engine: Engine, name: string, value: OnnxValue): boolean {
  return onDeviceOf([value]).some((tensor) => {
    if (threadOf(tensor) !== engine.thread) return true;
    return !keptBy(tensor) && /^u?int64$/.test(tensor.type) && engine.readsOnGpu?.(name) === false;
  });
}

/** The same feed on the CPU, if it can be downloaded. */
export async function fetched(engine: Engine, name: string, value: OnnxValue): Promise<OnnxValue> {
  if (Array.isArray(value)) return Promise.all(value.map((item: OnnxValue) => fetched(engine, name, item)));
  if (!(value instanceof Tensor && isFetched(engine, name, value))) return value;
  const { type, dims } = value;
  const dtype = dtypeOfType(type);
  const kept = keptBy(value);
  const bytes = kept
    ? kept.keeper.download(kept.gpuId, dtype, dims)
    : engine.keeper?.fetch?.(resourceOf(value), dtype, dims, `input "${name}": ${type}[${dims}]`);
  return bytes ? new Tensor(type, fromBytes(type, await bytes), dims) : value;
}

/** Waits until the page can use the outputs left on the device. */
export async function settled(outputs: readonly Value[], keeper: TensorKeeper | undefined): Promise<void> {
  const left = outputs.filter((value): value is TensorOnGpu => !isContainer(value) && isOnGpu(value));
  await Promise.all(left.map(({ gpuId, dtype, dims }) => keeper?.settle?.(gpuId, dtype, dims)));
}

/** Frees the outputs left on a device that no tensor has received. @param bound those bound to tensors. */
export function discard(outputs: RunResult['outputs'], bound: object, keeper: TensorKeeper | undefined): void {
  for (const [name, value] of Object.entries(outputs))
    if (!Object.hasOwn(bound, name) && !isContainer(value) && isOnGpu(value)) keeper?.free(value.gpuId);
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
  ensureData(placeOf(name), target);
  if (Array.isArray(data))
    data.forEach((text, i) => {
      (target.data as string[])[i] = text;
    });
  else (target.data as Uint8Array).set(data as Uint8Array);
  return target;
}

const placeOf = (output: string) => `the tensor for output "${output}"`;

/** Throws if the buffer of a tensor on the CPU was transferred. */
function ensureData(what: string, { data, size }: Tensor): void {
  if (data.length === 0 && size > 0)
    throw invalid(`${what}: the buffer of its data was transferred elsewhere, and is empty now`);
}

function onCpu(what: string, tensor: Tensor): Value {
  if (tensor.location === 'none') throw invalid(`${what} was disposed of`);
  ensureData(what, tensor);
  return { dtype: dtypeOfType(tensor.type), dims: tensor.dims, data: toBytes(tensor.data) };
}
