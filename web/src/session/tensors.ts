// Tensors as callers give and get them, and the checks of feeds.
import { DType, ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { cpuElementSize, elementCount, hasGpuForm, typeName } from '../jsep/elements';
import type { PlanInput } from './plan';

export interface TensorOnCpu {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** Little-endian elements in C order; of strings: a uint32 byte length, then UTF-8, each. */
  readonly data: Uint8Array;
}

export interface TensorOnGpu {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A persistent buffer of the session's device. */
  readonly gpuId: number;
}

export type Tensor = TensorOnCpu | TensorOnGpu;
export type Feeds = { readonly [name: string]: Tensor };

export function isOnGpu(tensor: Tensor): tensor is TensorOnGpu {
  return 'gpuId' in tensor;
}

/** The feeds in the order of the graph's inputs; throws with the name of what is wrong. */
export function orderFeeds(inputs: readonly PlanInput[], feeds: Feeds): Tensor[] {
  const names = inputs.map(({ name }) => name);
  const extra = Object.keys(feeds).filter((name) => !names.includes(name));
  const missing = names.filter((name) => !(name in feeds));
  if (extra.length > 0) throw invalid(`the model has no input named ${quoted(extra)}; its inputs are ${quoted(names)}`);
  if (missing.length > 0) throw invalid(`no feed for the input ${quoted(missing)}`);
  return inputs.map((input) => {
    const tensor = feeds[input.name];
    checkFeed(input, tensor);
    return tensor;
  });
}

function checkFeed({ name, dtype, dims }: PlanInput, tensor: Tensor): void {
  if (dtype !== DType.undefined && tensor.dtype !== dtype) {
    throw invalid(`input "${name}" wants ${typeName(dtype)}, got ${typeName(tensor.dtype)}`);
  }
  const fits = !dims || (dims.length === tensor.dims.length && dims.every((dim, i) => dim < 0 || dim === tensor.dims[i]));
  if (!fits) {
    const wanted = dims.map((dim) => (dim < 0 ? '?' : dim));
    throw invalid(`input "${name}" wants shape [${wanted}], got [${tensor.dims}]`);
  }
  if (isOnGpu(tensor)) {
    if (!hasGpuForm(tensor.dtype)) throw invalid(`input "${name}": ${typeName(tensor.dtype)} cannot be on the GPU`);
    return;
  }
  const size = cpuElementSize(tensor.dtype);
  const bytes = size === undefined ? undefined : elementCount(tensor.dims) * size;
  if (bytes !== undefined && tensor.data.byteLength !== bytes) {
    throw invalid(`input "${name}" of shape [${tensor.dims}] should have ${bytes} bytes, got ${tensor.data.byteLength}`);
  }
}

function invalid(message: string): RuntimeError {
  return new RuntimeError(ErrorCode.invalid_argument, message);
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
