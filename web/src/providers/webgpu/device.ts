// Opens the WebGPU device: the one place that raises limits, requests features, and makes DeviceTraits.
import { ErrorCode } from '../../schema';
import { RuntimeError } from '../../errors';
import { host } from '../../host';
import { ElementForms } from '../../contract/elements';
import type { DeviceTraits, SubgroupMatrix } from '../../contract/kernel';
import { type Counters, newCounters } from '../../device/counters';
import { Deadline } from './deadline';

export interface DeviceOptions {
  readonly powerPreference?: GPUPowerPreference;
  readonly forceFallbackAdapter?: boolean;
  /** True to request subgroup matrices, an experiment of Chromium's. */
  readonly subgroupMatrix?: boolean;
  /**
   * Expected: there should be a real GPU: ask again while there is no adapter or a software one, as happens while the
   * GPU process restarts. Required: a software adapter is refused, too.
   */
  readonly hardware?: 'expected' | 'required';
  /** Milliseconds for opening it. */
  readonly timeoutMs?: number;
}

/** A device's description for Python (internals, section 1). */
export interface DeviceDescription {
  readonly vendor: string;
  readonly architecture: string;
  readonly device: string;
  readonly description: string;
  readonly software: boolean;
  readonly features: string[];
  readonly limits: Record<string, number>;
}

const WANTED_FEATURES: readonly GPUFeatureName[] = ['shader-f16', 'timestamp-query', 'subgroups'];
/** A feature of the language, not of a device. */
const PACKED_DOT = 'packed_4x8_integer_dot_product';
/** Measured on an H100; on others a lower bound may be better. */
const BYTES_FROM = 1 << 27;
const SUBGROUP_MATRIX = 'chromium-experimental-subgroup-matrix' as GPUFeatureName;

const RAISED_LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
  'maxUniformBufferBindingSize',
] as const;

const SOFTWARE_ADAPTER = /swiftshader|llvmpipe|lavapipe|softpipe|software.rasterizer|basic render|warp/i;

const LOSS_DELAY_MS = 200;
/** Bytes that wait for a submit: of a large model's weights, at most this much is in memory twice. */
const MOST_WRITTEN = 64 << 20;

/** An open device. A lost device never returns; its owner then opens another. */
export class Gpu {
  readonly counters: Counters = newCounters();
  /** Number of downloads in progress: the GPU has work. */
  awaited = 0;
  readonly elements: ElementForms;
  /** The reason why the device was lost; undefined while it is alive. */
  lost: string | undefined;
  /** Bytes written since the last submit. */
  private written = 0;
  /** Errors that no error scope caught, since the last call of takeUncaptured. */
  private uncaptured: string[] = [];

  constructor(
    readonly device: GPUDevice,
    readonly traits: DeviceTraits,
    readonly description: DeviceDescription,
  ) {
    this.elements = new ElementForms(traits);
    void device.lost.then((info) => {
      this.lost = info.message || info.reason || 'no reason given';
    });
    device.addEventListener('uncapturederror', (event) => {
      event.preventDefault();
      const message = describeGpuError(event.error);
      this.uncaptured.push(message);
      this.onUncapturedError?.(message);
    });
  }

  /**
   * The traits for kernels whose tensors are bound in parts: each access is a choice among the parts, so texts should
   * be short.
   */
  get traitsForLarge(): DeviceTraits {
    return { ...this.traits, slowCompiler: this.traits.slowCompiler || this.traits.software };
  }

  /** True if we closed it ourselves. */
  closed = false;

  /** Closes the device, whose sessions are gone. */
  close(): void {
    this.closed = true;
    this.device.destroy();
  }

  /** Called with each uncaptured error, for the log. */
  onUncapturedError?: (message: string) => void;

  /** Throws if the device was lost. */
  ensureAlive(): void {
    if (this.lost !== undefined) throw this.lossError();
  }

  /** The error to throw for a rejected GPU promise: it may show the loss of a device before `lost` does. */
  async failure(error: unknown): Promise<unknown> {
    await Promise.race([this.device.lost, new Promise((resolve) => setTimeout(resolve, LOSS_DELAY_MS))]);
    return this.lost === undefined ? error : this.lossError();
  }

  private lossError(): RuntimeError {
    return new RuntimeError(ErrorCode.device_lost, `the GPU device was lost: ${this.lost}`);
  }

  /** The uncaptured errors so far, each returned once. */
  takeUncaptured(): string[] {
    const errors = this.uncaptured;
    this.uncaptured = [];
    return errors;
  }

  createBuffer(descriptor: GPUBufferDescriptor): GPUBuffer {
    const limit = this.device.limits.maxBufferSize;
    if (descriptor.size > limit) {
      const message = `a GPU buffer of ${descriptor.size} bytes is beyond this adapter's limit of ${limit}`;
      throw new RuntimeError(ErrorCode.out_of_memory, message);
    }
    this.counters.buffers++;
    return this.device.createBuffer(descriptor);
  }

  submit(commands: GPUCommandBuffer[]): void {
    this.counters.submits++;
    this.written = 0;
    this.device.queue.submit(commands);
  }

  /** Chromium keeps its copy of written data until a submit. */
  flush(): void {
    if (this.written > 0) this.device.queue.submit([]);
    this.written = 0;
  }

  /** Writes bytes, whose number need not be a multiple of 4; `buffer` must have room for rounding up. */
  write(buffer: GPUBuffer, offset: number, given: Uint8Array): void {
    this.counters.uploads++;
    this.written += given.byteLength;
    if (this.written > MOST_WRITTEN) this.flush();
    const bytes = host.forQueue(given);
    const whole = bytes.byteLength & ~3;
    if (whole > 0) this.device.queue.writeBuffer(buffer, offset, bytes as Uint8Array<ArrayBuffer>, 0, whole);
    if (whole < bytes.byteLength) {
      const rest = new Uint8Array(4);
      rest.set(bytes.subarray(whole));
      this.device.queue.writeBuffer(buffer, offset + whole, rest);
    }
  }
}

const HARDWARE_TRIES = 6;
const HARDWARE_DELAY_MS = 700;

async function findAdapter(
  { hardware, timeoutMs: _, ...options }: DeviceOptions,
  deadline: Deadline,
): Promise<GPUAdapter | null> {
  const gpu = await host.gpu();
  if (typeof gpu === 'string') throw new RuntimeError(ErrorCode.no_adapter, gpu);
  const ask = () => deadline.wait('navigator.gpu.requestAdapter()', () => gpu.requestAdapter(options));
  if (options.forceFallbackAdapter) return ask();
  for (let tries = 1; ; tries++) {
    const adapter = await ask();
    if (!hardware || tries === HARDWARE_TRIES || (adapter && !isSoftware(adapter))) return adapter;
    await new Promise((resolve) => setTimeout(resolve, HARDWARE_DELAY_MS));
  }
}

type AdapterDescription = Pick<DeviceDescription, 'vendor' | 'architecture' | 'device' | 'description' | 'software'>;

/** Throws if a real GPU is required and this is not one. */
export function checkHardware(
  options: DeviceOptions,
  { vendor, architecture, device, description, software }: AdapterDescription,
): void {
  if (options.hardware !== 'required' || options.forceFallbackAdapter || !software) return;
  const found = [vendor, architecture, device, description].filter(Boolean).join(' ') || 'unnamed';
  throw new RuntimeError(
    ErrorCode.no_adapter,
    `a GPU was asked for, and WebGPU has only a software adapter here (${found})`,
  );
}

function describeAdapter(adapter: { readonly info: GPUAdapterInfo }): AdapterDescription {
  const { vendor, architecture, device, description } = adapter.info;
  return { vendor, architecture, device, description, software: isSoftware(adapter) };
}

function isSoftware({ info }: { readonly info: GPUAdapterInfo }): boolean {
  const fallback = (info as { isFallbackAdapter?: boolean }).isFallbackAdapter ?? false;
  return fallback || SOFTWARE_ADAPTER.test(`${info.vendor} ${info.architecture} ${info.device} ${info.description}`);
}

/** A GPU error in words. Missing memory is described in our words, because only the class shows it. */
export function describeGpuError(error: GPUError): string {
  return error instanceof GPUOutOfMemoryError ? `${OUT_OF_MEMORY} ${error.message}`.trim() : error.message;
}
export const OUT_OF_MEMORY = 'the GPU is out of memory:';

/** Opens a device, of `given` if there is one. */
export async function openGpu(options: DeviceOptions = {}, given?: GPUAdapter): Promise<Gpu> {
  const deadline = new Deadline(options.timeoutMs);
  const adapter = given ?? (await findAdapter(options, deadline));
  if (!adapter) throw new RuntimeError(ErrorCode.no_adapter, 'WebGPU has no adapter here');
  checkHardware(options, describeAdapter(adapter));
  const limits: Record<string, number> = {};
  for (const name of RAISED_LIMITS) limits[name] = adapter.limits[name];
  const wanted = options.subgroupMatrix ? [...WANTED_FEATURES, SUBGROUP_MATRIX] : WANTED_FEATURES;
  const device = await deadline.wait('GPUAdapter.requestDevice()', () =>
    adapter.requestDevice({
      requiredFeatures: wanted.filter((feature) => adapter.features.has(feature)),
      requiredLimits: limits,
    }),
  );
  try {
    await deadline.wait('GPUDevice.createComputePipelineAsync()', () => firstPipeline(device));
  } catch (error) {
    device.destroy();
    throw error;
  }
  return gpuOf(device, adapter);
}

/** A device that cannot compile the smallest shader is refused. */
function firstPipeline(device: GPUDevice): Promise<GPUComputePipeline> {
  const module = device.createShaderModule({ code: '@compute @workgroup_size(1) fn main() {}' });
  return device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
}

/** A device that the page opened, with its features and limits. */
export async function adoptDevice(device: GPUDevice): Promise<Gpu> {
  const { adapterInfo } = device;
  const info = adapterInfo ?? { vendor: '', architecture: '', device: '', description: device.label };
  return gpuOf(device, { info: info as GPUAdapterInfo });
}

async function gpuOf(device: GPUDevice, adapter: { readonly info: GPUAdapterInfo }): Promise<Gpu> {
  const description = describe(adapter, device);
  const gpu = await host.gpu();
  const packedDot = typeof gpu !== 'string' && gpu.wgslLanguageFeatures?.has(PACKED_DOT);
  const bytesFrom = packedDot ? BYTES_FROM : Infinity;
  return new Gpu(device, { ...traitsOf(device, adapter.info, description.software), bytesFrom }, description);
}

function describe(adapter: { readonly info: GPUAdapterInfo }, device: GPUDevice): DeviceDescription {
  const limits: Record<string, number> = {};
  for (const limit of RAISED_LIMITS) limits[limit] = device.limits[limit];
  return { ...describeAdapter(adapter), limits, features: [...device.features].sort() };
}

/** The adapter's information in Chromium, if the feature is listed. */
interface MatrixInfo {
  readonly subgroupMinSize?: number;
  readonly subgroupMaxSize?: number;
  readonly subgroupMatrixConfigs?: readonly {
    readonly componentType: string;
    readonly resultComponentType: string;
    readonly M: number;
    readonly N: number;
    readonly K: number;
  }[];
}

/** The largest matrices of halves with float32 sums; undefined: there are none, or subgroups have several sizes. */
export function subgroupMatrixOf(
  features: Pick<ReadonlySet<string>, 'has'>,
  { subgroupMinSize, subgroupMaxSize, subgroupMatrixConfigs = [] }: MatrixInfo,
): SubgroupMatrix | undefined {
  if (!features.has(SUBGROUP_MATRIX) || !features.has('shader-f16')) return undefined;
  if (!subgroupMaxSize || subgroupMinSize !== subgroupMaxSize) return undefined;
  return [...subgroupMatrixConfigs]
    .filter(({ componentType, resultComponentType }) => componentType === 'f16' && resultComponentType === 'f32')
    .map(({ M, N, K }) => ({ m: M, n: N, k: K, subgroup: subgroupMaxSize }))
    .filter(({ m, n, k, subgroup }) => [m, n, k].every((size) => 32 % size === 0) && m * n >= 4 * subgroup)
    .sort((a, b) => b.m * b.n * b.k - a.m * a.n * a.k)[0];
}

function traitsOf(device: GPUDevice, info: GPUAdapterInfo, software: boolean): Omit<DeviceTraits, 'bytesFrom'> {
  const { limits, features } = device;
  return {
    software,
    // Recognizes lavapipe by its limits, because Chromium may call it SwiftShader, which has 256.
    slowCompiler: software && limits.maxComputeInvocationsPerWorkgroup > 256,
    f16: features.has('shader-f16'),
    subgroups: features.has('subgroups'),
    maxWorkgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
    maxStorageBuffersPerStage: limits.maxStorageBuffersPerShaderStage,
    maxStorageBindingSize: limits.maxStorageBufferBindingSize,
    maxInvocations: limits.maxComputeInvocationsPerWorkgroup,
    maxWorkgroupStorage: limits.maxComputeWorkgroupStorageSize,
    subgroupMatrix: subgroupMatrixOf(features, info as MatrixInfo),
  };
}
