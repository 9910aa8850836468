// Sessions as onnxruntime-web has them: tensors in and out, on the CPU or the GPU.
import { ErrorCode, ValueKind } from '../schema';
import { RuntimeError } from '../errors';
import { elementCount } from '../contract/elements';
import { storageBytes } from '../gpu/memory_plan';
import type { GpuProvider } from '../gpu/provider';
import type { RunInfo } from '../session/run_options';
import { ofPackage } from '../session/model_source';
import { Runtime } from '../session/runtime';
import { Session, type SessionOptions } from '../session/session';
import { isContainer, isOnGpu, type TensorOnGpu, type Value } from '../wire/values';
import type { Header, NodeArgEntry } from '../package/header';
import type { ModelFile } from '../package/model_file';
import { Package } from '../package/package';
import { choosePlan, type ExternalFile, partOf, type ProviderChoice } from './execution_providers';
import { dtypeOfType, fromBytes, invalid, type TensorType, toBytes, typeInOnnx, typeOfDtype } from './elements';
import { Tensor, type TensorLocation } from './tensor';

/** An array for a sequence, null for an optional without an element. */
export type OnnxValue = Tensor | readonly OnnxValue[] | null;
export type OnnxValues = { readonly [name: string]: OnnxValue };

export type OutputLocation = Exclude<TensorLocation, 'none'>;

export interface InferenceSessionOptions extends SessionOptions, ProviderChoice {
  /** The further files of a model in parts, where they are not beside its URL. */
  readonly externalData?: readonly ExternalFile[];
  /** Where outputs go: all, or by name. Default: the CPU. */
  readonly preferredOutputLocation?: OutputLocation | { readonly [name: string]: OutputLocation };
}

/** Of an input or output; `shape` has a name, or "" if there is none, where a size is open. */
export type ValueMetadata =
  | { readonly name: string; readonly isTensor: false }
  | {
      readonly name: string;
      readonly isTensor: true;
      readonly type: TensorType;
      readonly shape: readonly (number | string)[];
    };

export interface InferenceRunOptions {
  readonly signal?: AbortSignal;
  /** See RunOptions.graphId. */
  readonly graphId?: number;
}

/** Names of outputs; or tensors to write them into, null where the session makes one. */
export type Fetches = readonly string[] | { readonly [name: string]: Tensor | null };

export class InferenceSession {
  /** What the last run made and how long it took. */
  lastRun: RunInfo | undefined;

  private constructor(
    readonly session: Session,
    private readonly header: Header,
    private readonly locations: InferenceSessionOptions['preferredOutputLocation'],
  ) {}

  /**
   * Makes a session of a `.pyort` file, which `py-ort export` writes.
   *
   * @param model its URL, or the file itself.
   */
  static async create(model: ModelFile, options: InferenceSessionOptions = {}): Promise<InferenceSession> {
    const runtime = options.runtime ?? new Runtime();
    const opened = await Package.open(model, partOf(options.externalData));
    let session: Session;
    try {
      const { number, settings } = await choosePlan(opened, runtime, options);
      session = await Session.load(ofPackage(await opened.plan(number)), { ...options, ...settings, runtime });
    } catch (error) {
      opened.close();
      throw error;
    }
    try {
      checkLocations(session, options.preferredOutputLocation);
    } catch (error) {
      await session.release();
      throw error;
    }
    return new InferenceSession(session, opened.header, options.preferredOutputLocation);
  }

  /** What each input takes, as the model says. */
  get inputMetadata(): readonly ValueMetadata[] {
    return this.header.inputs.map(metadataOf);
  }

  /** What each output is, as far as the model says. */
  get outputMetadata(): readonly ValueMetadata[] {
    return this.header.outputs.map(metadataOf);
  }

  get inputNames(): string[] {
    return this.session.plan.inputs.map(({ name }) => name);
  }

  get outputNames(): string[] {
    return [...this.session.plan.outputs];
  }

  /** Runs the model. Feeds on the GPU are read in place, and stay their owner's. */
  async run(
    feeds: OnnxValues,
    fetches: Fetches = this.outputNames,
    options: InferenceRunOptions = {},
  ): Promise<{ [name: string]: OnnxValue }> {
    const names = Array.isArray(fetches) ? (fetches as readonly string[]) : Object.keys(fetches);
    const targets = Array.isArray(fetches) ? {} : (fetches as { readonly [name: string]: Tensor | null });
    const lent: number[] = [];
    try {
      const placed = this.places(targets, lent);
      const outputsOnGpu = names.filter((name) => !targets[name] && this.locationOf(name) === 'gpu-buffer');
      const { outputs, info } = await this.session.run(this.feeds(feeds, lent), {
        ...options,
        outputs: names,
        outputsOnGpu,
        bind: placed,
      });
      this.lastRun = info;
      return Object.fromEntries(
        names.map((name) => [name, this.result(outputs[name], name, targets[name] ?? undefined)]),
      );
    } finally {
      for (const id of lent) this.session.provider?.buffers.giveBack(id);
    }
  }

  /** Frees the model. Tensors left on the GPU stay until they are disposed of. */
  release(): Promise<void> {
    return this.session.release();
  }

  private locationOf(name: string): OutputLocation {
    return (typeof this.locations === 'object' ? this.locations[name] : this.locations) ?? 'cpu';
  }

  private feeds(feeds: OnnxValues, lent: number[]): { [name: string]: Value } {
    const given = Object.entries(feeds).filter(([, value]) => value !== null);
    return Object.fromEntries(given.map(([name, value]) => [name, this.feed(`input "${name}"`, value, lent)]));
  }

  private feed(what: string, value: OnnxValue, lent: number[]): Value {
    if (value instanceof Tensor)
      return value.location === 'gpu-buffer' ? this.onGpu(what, value, lent) : onCpu(what, value);
    if (!Array.isArray(value)) throw invalid(`${what} takes a Tensor, or an array of them`);
    const items = (value as readonly OnnxValue[]).map((item, i) => this.feed(`${what}[${i}]`, item, lent));
    return { kind: ValueKind.sequence, dtype: items[0]?.dtype ?? 0, items };
  }

  private onGpu(what: string, tensor: Tensor, lent: number[]): TensorOnGpu {
    const { type, dims, gpuId, gpuBuffer } = tensor;
    const dtype = dtypeOfType(type);
    if (gpuId !== undefined) return { dtype, dims, gpuId };
    const { provider } = this.session;
    if (!provider) throw invalid(`${what} is a buffer of your own, and no node of this session runs on a GPU`);
    checkBuffer(what, tensor, gpuBuffer, storageBytes(elementCount(dims) * provider.gpu.elements.size(dtype)));
    const id = provider.buffers.lend(gpuBuffer);
    lent.push(id);
    return { dtype, dims, gpuId: id };
  }

  /** The targets on the GPU. */
  private places(targets: { readonly [name: string]: Tensor | null }, lent: number[]): { [name: string]: TensorOnGpu } {
    const found = Object.entries(targets).filter(([, tensor]) => tensor && tensor.location !== 'cpu');
    return Object.fromEntries(
      found.map(([name, tensor]) => [name, this.onGpu(`the tensor for output "${name}"`, tensor!, lent)]),
    );
  }

  private result(value: Value, name: string, target?: Tensor): OnnxValue {
    if (target && target.location !== 'cpu') return target;
    if (isContainer(value)) {
      if (target) throw invalid(`output "${name}" is no tensor: nothing can be bound to it`);
      const items = value.items.map((item) => this.result(item, name));
      return value.kind === ValueKind.sequence ? items : (items[0] ?? null);
    }
    const type = typeOfDtype(value.dtype);
    if (isOnGpu(value)) return Tensor.kept(type, value.dims, this.session.provider as GpuProvider, value.gpuId);
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
}

function metadataOf({ name, type, dims }: NodeArgEntry): ValueMetadata {
  const found = typeInOnnx(type);
  if (!found) return { name, isTensor: false };
  return { name, isTensor: true, type: found, shape: (dims ?? []).map((dim) => dim ?? '') };
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

function checkLocations(session: Session, locations: InferenceSessionOptions['preferredOutputLocation']): void {
  const given = typeof locations === 'object' ? locations : { '': locations ?? 'cpu' };
  for (const [name, location] of Object.entries(given)) {
    if (location !== 'cpu' && location !== 'gpu-buffer') {
      throw invalid(`preferredOutputLocation is "cpu" or "gpu-buffer", not "${String(location)}"`);
    }
    if (name && !session.plan.outputs.includes(name))
      throw invalid(`preferredOutputLocation: the model has no output "${name}"`);
    if (location === 'gpu-buffer' && !session.provider) {
      throw new RuntimeError(
        ErrorCode.invalid_argument,
        'preferredOutputLocation: no node of this model runs on a GPU',
      );
    }
  }
}
