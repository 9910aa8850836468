// Feeds of a run: in order, and checked against the plan.
import { DType, ValueKind } from '../schema';
import { cpuElementSize, elementCount, hasGpuForm, typeName } from '../contract/elements';
import { invalid } from '../errors';
import { isContainer, isOnGpu, named, type Tensor, type Value } from '../wire/values';
import type { PlanInput } from './plan';

export type Feeds = { readonly [name: string]: Value };

/** The feeds in the order of the graph's inputs; a missing optional is empty. Errors name the feed. */
export function orderFeeds(inputs: readonly PlanInput[], feeds: Feeds): Value[] {
  const names = inputs.map(({ name }) => name);
  const extra = Object.keys(feeds).filter((name) => !names.includes(name));
  const missing = inputs
    .filter(({ name, kind }) => kind !== ValueKind.optional && !Object.hasOwn(feeds, name))
    .map(({ name }) => name);
  if (extra.length > 0) throw invalid(`the model has no input named ${quoted(extra)}; its inputs are ${quoted(names)}`);
  if (missing.length > 0) throw invalid(`no feed for the input ${quoted(missing)}`);
  return inputs.map((input) => {
    const value = named(feeds, input.name) ?? { kind: ValueKind.optional, dtype: input.dtype, items: [] };
    const feed = asScalar(input, value);
    checkFeed(input, feed);
    return feed;
  });
}

/** @throws unless a model has the outputs that a run names. */
export function checkOutputNames(outputs: readonly string[], asked: readonly string[]): void {
  const unknown = asked.filter((name) => !outputs.includes(name));
  if (unknown.length > 0) throw invalid(`the model has no output named ${quoted(unknown)}; it has ${quoted(outputs)}`);
}

/** A tensor of one element counts as the scalar that the model declares, if the model cannot distinguish them. */
function asScalar({ dims, feedRank }: PlanInput, value: Value): Value {
  if (dims?.length !== 0 || isContainer(value) || value.dims.length === 0) return value;
  return value.dims.length <= feedRank && elementCount(value.dims) === 1 ? { ...value, dims: [] } : value;
}

function checkFeed(input: PlanInput, value: Value): void {
  if (!isContainer(value)) {
    // A tensor is an optional with an element.
    if (input.kind === ValueKind.sequence) throw invalid(`input "${input.name}" wants a sequence, got a tensor`);
    checkTensor(input, value);
    return;
  }
  const fits = input.kind === value.kind || (input.kind === ValueKind.optional && value.kind === ValueKind.sequence);
  if (!fits) throw invalid(`input "${input.name}" wants a ${ValueKind[input.kind]}, got a ${ValueKind[value.kind]}`);
  for (const item of value.items) checkItem(input, item);
}

/** The plan has no shapes inside containers. */
function checkItem(input: PlanInput, item: Value): void {
  if (isContainer(item)) {
    for (const inner of item.items) checkItem(input, inner);
  } else if (isOnGpu(item)) {
    throw invalid(`input "${input.name}" is a ${ValueKind[input.kind]}: its tensors must be on the CPU`);
  } else {
    checkTensor({ ...input, dims: undefined }, item);
  }
}

function checkTensor({ name, dtype, dims }: PlanInput, tensor: Tensor): void {
  if (dtype !== DType.undefined && tensor.dtype !== dtype) {
    throw invalid(`input "${name}" wants ${typeName(dtype)}, got ${typeName(tensor.dtype)}`);
  }
  const fits =
    !dims || (dims.length === tensor.dims.length && dims.every((dim, i) => dim < 0 || dim === tensor.dims[i]));
  if (!fits) {
    const wanted = dims.map((dim) => (dim < 0 ? '?' : dim));
    const hint = dims.length === 0 ? '; its rank matters to the model, so feed a tensor without dimensions' : '';
    throw invalid(`input "${name}" wants shape [${wanted}], got [${tensor.dims}]${hint}`);
  }
  if (isOnGpu(tensor)) {
    if (!hasGpuForm(tensor.dtype))
      throw invalid(`input "${name}": ${typeName(tensor.dtype)} has no form on the GPU: feed it from the CPU`);
    return;
  }
  const size = cpuElementSize(tensor.dtype);
  const bytes = size === undefined ? undefined : elementCount(tensor.dims) * size;
  if (bytes !== undefined && tensor.data.byteLength !== bytes) {
    throw invalid(
      `input "${name}" of shape [${tensor.dims}] should have ${bytes} bytes, got ${tensor.data.byteLength}`,
    );
  }
}

/** Their types and shapes, and their places on the device. */
export function describeFeeds(inputs: readonly PlanInput[], feeds: readonly Value[]): string {
  return feeds
    .map((feed, i) => {
      if (isContainer(feed)) return inputs[i].name;
      const where = isOnGpu(feed) ? ` in GPU buffer ${feed.gpuId}` : '';
      return `${inputs[i].name}: ${typeName(feed.dtype)}[${feed.dims}]${where}`;
    })
    .join(', ');
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
