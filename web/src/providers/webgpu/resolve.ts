// The resolve step of one kernel call: output shapes and GPU commands, from input shapes. Nothing runs here.
import { type DType, ErrorCode } from '../../schema';
import type { CallInput, Host, HostTest, Resolved } from '../../device/call';
import { makeTensor } from '../../device/call';
import type { Program, Region } from '../../device/commands';
import { foldGrid } from './folded_grid';
import { elementType, packUniforms, type ShaderRequest } from './shader';
import { type Bound, inWindows } from './windows';
import { storageBytes } from '../../device/memory_plan';
import type { InPlace } from '../../device/segment_plan';
import { elementCount, type Forms, hasGpuForm, storageSize, toNumbers, typeName } from '../../contract/elements';
import {
  type Binding,
  type Context,
  type DeviceTraits,
  type Dispatch,
  type Kernel,
  KernelError,
  type Spec,
  type Tensor,
} from '../../contract/kernel';
import { RuntimeError } from '../../errors';
import { windowStep } from './wgsl/large';
import { inUnpacked } from './unpacked';

/** The limit of a dimension: the core has 32 bits. */
const LARGEST_SIZE = 2 ** 31 - 1;

/** Iterations of all threads of a dispatch together: a GPU needs seconds for them, and a software adapter hours. */
const MOST_ITERATIONS = 2 ** 42;

/** The parts of a device with shaders as programs that calls use. */
export interface ShaderDevice {
  readonly gpu: {
    readonly traits: DeviceTraits;
    readonly traitsForLarge: DeviceTraits;
    readonly elements: Forms;
    readonly device: { readonly limits: { readonly maxBufferSize: number } };
  };
  readonly pipelines: { get(request: ShaderRequest): Program };
  /** The error for a tensor beyond the limit of a buffer; default: out_of_memory. */
  tooLarge?(message: string): Error;
}

/** Returns the bytes of a tensor. Throws if a buffer cannot have so many. */
export function checkedBytes(op: string, tensor: Tensor, device: ShaderDevice): number {
  const { bytes } = regionOf(tensor);
  const { maxBufferSize } = device.gpu.device.limits;
  if (bytes <= maxBufferSize && tensor.dims.every((dim) => dim <= LARGEST_SIZE)) return bytes;
  const limit = `this device's limit of ${maxBufferSize} bytes for a tensor`;
  const message = `${op}: a tensor of shape [${tensor.dims}] is beyond ${limit}`;
  throw device.tooLarge?.(message) ?? new RuntimeError(ErrorCode.out_of_memory, message);
}

/** Resolves `kernel` on `inputs`; `wants[i]`: true if a node reads output i. */
export function resolveKernel<A>(
  kernel: Kernel<A>,
  attributes: A,
  inputs: readonly (CallInput | undefined)[],
  wants: readonly boolean[],
  host: Host,
  provider: ShaderDevice,
): Resolved {
  const resolved: Resolved = { commands: [], hostReads: new Set(), hostTests: [] };
  const hostBytes = new Map<Tensor, { bytes: Uint8Array; index: number }>();
  inputs.forEach((input, index) => {
    if (input?.bytes) hostBytes.set(input.tensor, { bytes: input.bytes, index });
  });
  const call = { resolved, hostBytes, host, provider };
  const context = new CallContext(
    kernel.op,
    inputs.map((input) => input?.tensor),
    wants,
    call,
  );
  kernel.resolve(context, attributes);
  const forgotten = wants.findIndex((wanted, i) => wanted && !context.made[i]);
  if (forgotten >= 0) throw new KernelError(`kernel ${kernel.op} did not make its output ${forgotten}`);
  return resolved;
}

/** Values shared by a call and the calls inside it. */
interface Call {
  readonly resolved: Resolved;
  readonly hostBytes: Map<Tensor, { bytes: Uint8Array; index: number }>;
  readonly host: Host;
  readonly provider: ShaderDevice;
}

class CallContext implements Context {
  readonly made: Tensor[] = [];
  /** True if a tensor of the call is larger than one binding. */
  private large = false;

  constructor(
    private readonly op: string,
    readonly inputs: readonly (Tensor | undefined)[],
    private readonly wanted: readonly boolean[],
    private readonly run: Call,
    private readonly given?: readonly Tensor[],
  ) {
    for (const tensor of [...inputs, ...(given ?? [])]) if (tensor?.location === 'gpu') this.look(tensor);
  }

  get device(): DeviceTraits {
    const { gpu } = this.run.provider;
    const { tiles } = this.run.host;
    const traits = this.large ? gpu.traitsForLarge : gpu.traits;
    return tiles ? { ...traits, tiles } : traits;
  }

  private look(tensor: Tensor): Tensor {
    this.large ||= regionOf(tensor).bytes > this.run.provider.gpu.traits.maxStorageBindingSize;
    return tensor;
  }

  get outputCount(): number {
    return this.wanted.length;
  }

  wants(i: number): boolean {
    return this.wanted[i] ?? false;
  }

  input(i: number): Tensor {
    const tensor = this.inputs[i];
    if (!tensor) throw new KernelError(`${this.op} needs its input ${i}`);
    return tensor;
  }

  data(i: number): number[] | undefined {
    const tensor = this.inputs[i];
    if (!tensor) return undefined;
    const { index, elements } = this.elementsOf(tensor, i);
    this.run.resolved.hostReads.add(index);
    return elements;
  }

  holds(i: number, test: HostTest['test']): boolean {
    const { index, elements } = this.elementsOf(this.input(i), i);
    const answer = test(elements);
    this.run.resolved.hostTests.push({ index, test, answer, seen: elements });
    return answer;
  }

  private elementsOf(tensor: Tensor, i: number): { index: number; elements: number[] } {
    const found = this.run.hostBytes.get(tensor);
    if (!found)
      throw new KernelError(`${this.op} reads the elements of its input ${i}, which must be a host input for that`);
    return { index: found.index, elements: toNumbers(tensor.dtype, found.bytes) };
  }

  boundInPlace(i: number, j: number): boolean {
    return !this.given && (this.run.host.boundInPlace?.(i, j) ?? false);
  }

  rowsBefore(): Tensor | undefined {
    return this.given ? undefined : this.run.host.rowsBefore;
  }

  output(i: number, dims: readonly number[], dtype?: DType): Tensor {
    const type = dtype ?? this.input(0).dtype;
    const bad = dims.find((dim) => !Number.isInteger(dim) || dim < 0);
    if (bad !== undefined) throw new KernelError(`${this.op}: output ${i} would have shape [${dims}]`);
    if (this.made[i]) throw new KernelError(`kernel ${this.op} makes its output ${i} twice`);
    if (this.given) {
      const tensor = this.given[i];
      if (!tensor || tensor.size !== elementCount(dims) || tensor.dtype !== type) {
        const made = `${typeName(type)}[${dims}]`;
        const given = tensor ? `${typeName(tensor.dtype)}[${tensor.dims}]` : 'nothing';
        throw new KernelError(`${this.op}: output ${i} is ${made}, but its caller gave ${given}`);
      }
      this.made[i] = tensor;
      return { ...tensor, dims: [...dims] };
    }
    return (this.made[i] = this.newTensor(type, dims, (bytes) => this.run.host.output(i, type, dims, bytes)));
  }

  view(i: number, input: Tensor, dims: readonly number[]): void {
    if (elementCount(dims) !== input.size)
      throw new KernelError(`${this.op}: [${input.dims}] cannot be seen as [${dims}]`);
    if (this.given) {
      const target = this.output(i, dims, input.dtype);
      if (target.id !== input.id && input.size > 0) {
        this.run.resolved.commands.push({ kind: 'copy', source: regionOf(input), target: regionOf(target) });
      }
      return;
    }
    const index = this.inputs.findIndex((tensor) => tensor?.id === input.id && tensor.location === input.location);
    if (index < 0) throw new KernelError(`kernel ${this.op}: a view must be of one of the inputs`);
    this.run.host.view(i, index, dims);
    this.made[i] = this.reshape(input, dims);
  }

  temp(dims: readonly number[], dtype: DType, ofWeights = false): Tensor {
    return this.newTensor(dtype, dims, (bytes) => this.run.host.temp(bytes, ofWeights));
  }

  private newTensor(dtype: DType, dims: readonly number[], allocate: (bytes: number) => number): Tensor {
    if (!hasGpuForm(dtype)) throw new KernelError(`${typeName(dtype)} has no form on the GPU`, true);
    const tensor = makeTensor(this.run.provider.gpu.elements, 0, dtype, dims, 'gpu');
    const bytes = checkedBytes(this.op, tensor, this.run.provider);
    return this.look({ ...tensor, id: allocate(bytes) });
  }

  reshape(tensor: Tensor, dims: readonly number[]): Tensor {
    if (elementCount(dims) !== tensor.size)
      throw new KernelError(`${this.op}: [${tensor.dims}] cannot be seen as [${dims}]`);
    return { ...tensor, dims: [...dims] };
  }

  window(tensor: Tensor, start: number, dims: readonly number[]): Tensor {
    if (start % windowStep(tensor) !== 0 || start + elementCount(dims) > tensor.size)
      throw new KernelError(`${this.op}: no window [${dims}] at ${start} of [${tensor.dims}]`);
    return { ...tensor, start: (tensor.start ?? 0) + start, dims: [...dims], size: elementCount(dims) };
  }

  dispatch<S extends Spec>(dispatch: Dispatch<S>): void {
    if (dispatch.shader.unpacked)
      inUnpacked(
        dispatch,
        (tensor) => this.unpackedTemp(tensor),
        (plain) => this.dispatchAsIs(plain),
        this.device,
      );
    else this.dispatchAsIs(dispatch);
  }

  private unpackedTemp(tensor: Tensor): Tensor {
    const wide = { ...tensor, packing: undefined, start: undefined };
    return { ...wide, id: this.run.host.temp(regionOf(wide).bytes, false) };
  }

  private dispatchAsIs<S extends Spec>(dispatch: Dispatch<S>): void {
    const { name } = dispatch.shader;
    const inputs = Object.entries(dispatch.inputs);
    const outputs = Object.entries(dispatch.outputs);
    const all = [...inputs, ...outputs].map(([, binding]) => ('tensor' in binding ? binding.tensor : binding));
    const written = all.slice(inputs.length);
    if (written.every(({ size }) => size === 0) || dispatch.workgroups.includes(0)) return;
    if (!this.run.host.unchecked) this.check(name, all, written, dispatch.workgroups);
    const threads = Math.max(...written.map(({ size }) => size));
    const iterations = threads * (dispatch.iterations ?? 1);
    if (iterations > MOST_ITERATIONS)
      throw new KernelError(
        `${this.op} would not end: ${dispatch.iterations} steps for each of ${threads} elements, together more than ` +
          `${MOST_ITERATIONS}; check its attributes and sizes, or place the node on wasm`,
      );
    const { shader, uniforms, workgroups } = foldGrid(
      dispatch.shader,
      dispatch.uniforms ?? {},
      dispatch.workgroups,
      this.device.maxWorkgroupsPerDimension,
    );
    // A tensor that is bound twice may not be writable.
    const alias =
      !this.device.ownElement &&
      (dispatch.shader.alias ?? false) &&
      new Set(all.map(({ id }) => id)).size === all.length;
    const bounds = [
      ...inputs.map(([key, binding]) => bind(name, key, binding, alias)),
      ...outputs.map(([key, binding]) => bind(name, key, binding, true)),
    ];
    const whole = bounds.every(({ region }) => region.bytes <= this.device.maxStorageBindingSize);
    const passes = whole
      ? [{ shader, bindings: bounds, regions: bounds.map(({ region }) => region), written: written.length, uniforms }]
      : inWindows(shader, dispatch.spec, bounds, written.length, uniforms, this.device);
    for (const pass of passes) {
      const { fields, bytes } = packUniforms(pass.uniforms, dispatch.f32, dispatch.i32);
      const request = {
        shader: pass.shader,
        spec: dispatch.spec,
        bindings: pass.bindings,
        uniforms: fields,
        hoisted: this.device.software,
      };
      const pipeline = this.run.provider.pipelines.get(request);
      const inPlace = whole ? inPlaceOf(dispatch, bounds) : [];
      this.run.resolved.commands.push({
        kind: 'dispatch',
        program: pipeline,
        bindings: pass.regions,
        written: pass.written,
        uniforms: fields.length > 0 ? bytes : undefined,
        workgroups,
        alias,
        inPlace,
        tiling: dispatch.tiling,
      });
    }
  }

  call<A>(kernel: Kernel<A>, attributes: A, inputs: readonly (Tensor | undefined)[], outputs: readonly Tensor[]): void {
    kernel.resolve(
      new CallContext(
        kernel.op,
        inputs,
        outputs.map(() => true),
        this.run,
        outputs,
      ),
      attributes,
    );
  }

  /** Checks for errors that WebGPU would report only later, and less clearly. */
  private check(name: string, all: readonly Tensor[], written: readonly Tensor[], workgroups: readonly number[]): void {
    const { maxStorageBuffersPerStage } = this.device;
    if (all.length > maxStorageBuffersPerStage) {
      throw new KernelError(
        `${name} binds ${all.length} tensors; this device allows ${maxStorageBuffersPerStage}`,
        true,
      );
    }
    if (workgroups.some((count) => !Number.isInteger(count) || count < 0))
      throw new KernelError(`${name} asks for [${workgroups}] workgroups`);
    for (const tensor of all) {
      if (tensor.location !== 'gpu')
        throw new KernelError(`${name} binds a host input, which is on the CPU (read it with ctx.data)`);
    }
    written.forEach((tensor, i) => {
      const place = all.length - written.length + i;
      if (all.some(({ id }, j) => id === tensor.id && j !== place)) {
        throw new KernelError(`${name} writes a tensor that it binds twice; WebGPU forbids that`);
      }
    });
  }
}

/** The inputs that may be in an output's place, with the same binding. */
function inPlaceOf<S extends Spec>(
  { inPlace = {}, inputs, outputs }: Dispatch<S>,
  bounds: readonly Bound[],
): InPlace[] {
  const [names, made] = [Object.keys(inputs), Object.keys(outputs)];
  return Object.entries(inPlace).flatMap(([input, output]): InPlace[] => {
    const [read, write] = [names.indexOf(input), made.indexOf(output)];
    if (read < 0 || write < 0) return [];
    const [from, to] = [bounds[read], bounds[names.length + write]];
    const alike =
      from.type === to.type &&
      from.packed?.packing === to.packed?.packing &&
      from.region.bytes === to.region.bytes &&
      (from.region.offset ?? 0) === (to.region.offset ?? 0);
    return alike ? [[read, write]] : [];
  });
}

function regionOf(tensor: Tensor): Region {
  const size = storageSize(tensor);
  return { id: tensor.id, offset: (tensor.start ?? 0) * size, bytes: storageBytes(elementCount(tensor.dims) * size) };
}

function bind(shader: string, name: string, binding: Binding, writable: boolean): Bound {
  const { tensor, vec } = 'tensor' in binding ? binding : { tensor: binding, vec: 1 as const };
  if (tensor.size % vec !== 0)
    throw new KernelError(`${shader}: ${name} has ${tensor.size} elements, not a multiple of ${vec}`);
  return {
    name,
    type: elementType(tensor.storage, vec),
    packed: tensor.packing && { packing: tensor.packing, lanes: vec },
    writable,
    region: regionOf(tensor),
    elementBytes: vec * storageSize(tensor),
    described: `${typeName(tensor.dtype)}[${tensor.dims}]`,
  };
}
