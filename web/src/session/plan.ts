// The parts of a plan that the page needs. The core reads the rest.
import * as flatbuffers from 'flatbuffers';
import { type DType, ErrorCode, type Node, Plan, type ValueKind } from '../schema';
import { RuntimeError } from '../errors';

/** Index in Plan.providers of the provider whose device may have feeds and outputs. */
export const DEVICE = 1;
/** The bit of the heap in the places of weights and inputs. */
const HEAP = 1;

export interface PlanWeight {
  readonly index: number;
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** In the weights blob. */
  readonly offset: number;
  readonly size: number;
  readonly onCpu: boolean;
  /** The provider that has it on its device, by its index in the plan; 0: none. */
  readonly device: number;
  /** Equal keys mean equal bytes, for all plans of this scope; "": unknown. */
  readonly key: string;
}

export interface PlanInput {
  readonly name: string;
  readonly kind: ValueKind;
  /** For a sequence or an optional: the type of its tensors. */
  readonly dtype: DType;
  /** -1: unknown before the run; undefined: even the rank is unknown. */
  readonly dims: readonly number[] | undefined;
  readonly onCpu: boolean;
  readonly onGpu: boolean;
  /** For a scalar: a feed of one element with up to this many dimensions counts as the scalar. */
  readonly feedRank: number;
}

export interface PlanNode {
  /** Among all nodes of the plan, graph by graph. */
  readonly index: number;
  /** The model's name for it, if known. */
  readonly name: string;
  readonly opType: string;
  readonly domain: string;
  /** Its provider, by index in the plan and by name. */
  readonly place: number;
  readonly provider: string;
}

/** A feed that only one node reads, and an output of the model that this node makes. */
export interface FedOutput {
  /** Among the nodes on the first device. */
  readonly node: number;
  /** Index among the node's inputs. */
  readonly input: number;
  readonly output: number;
  /** Index among the model's inputs. */
  readonly feed: number;
  readonly name: string;
  /** True if no node reads the output. */
  readonly alone: boolean;
}

export interface PlanInfo {
  readonly modelName: string;
  readonly inputs: readonly PlanInput[];
  readonly outputs: readonly string[];
  readonly weights: readonly PlanWeight[];
  readonly weightsSize: number;
  /** The providers that nodes are on: the core's own, then those with devices. */
  readonly providers: readonly string[];
  /** For each provider the stored type of each element type on its device. */
  readonly forms: readonly (readonly (readonly [dtype: DType, stored: DType])[])[];
  /** JSON: the user's own kernels. */
  readonly userKernels: string;
  /** The nodes of all graphs, read on demand. */
  nodes(): readonly PlanNode[];
  /** See FedOutput. */
  fedOutputs(): readonly FedOutput[];
  /** The operators of the nodes that make the outputs, by the output's name; none for an output that is an input. */
  makers(): ReadonlyMap<string, string>;
}

/** @param scope the plan's origin. */
export function readPlan(bytes: Uint8Array, scope = ''): PlanInfo {
  const buffer = new flatbuffers.ByteBuffer(bytes);
  if (bytes.byteLength < 8 || !Plan.bufferHasIdentifier(buffer)) {
    throw new RuntimeError(ErrorCode.invalid_graph, 'this is not a plan (its file identifier is not PORT)');
  }
  const plan = Plan.getRootAsPlan(buffer);
  const main = plan.graphs(0);
  if (!main) throw new RuntimeError(ErrorCode.invalid_graph, 'the plan has no graph');
  const list = <T>(length: number, item: (i: number) => T): T[] => Array.from({ length }, (_, i) => item(i));
  const weights = list(plan.weightsLength(), (index): PlanWeight => {
    const weight = plan.weights(index)!;
    return {
      index,
      dtype: weight.dtype(),
      dims: list(weight.dimsLength(), (i) => weight.dims(i)!),
      offset: Number(weight.offset()),
      size: Number(weight.size()),
      onCpu: (weight.places() & HEAP) !== 0,
      device: 31 - Math.clz32(weight.places() & ~HEAP || 1),
      key: weight.key() ? `${scope} ${weight.key()}` : '',
    };
  });
  const inputs = list(main.inputsLength(), (i): PlanInput => {
    const value = plan.values(main.inputs(i)!)!;
    const placement = plan.inputPlacement(i);
    const dims = value.rankKnown() ? list(value.dimsLength(), (axis) => value.dims(axis)!) : undefined;
    const places = placement?.places() ?? HEAP;
    const [onCpu, onGpu] = [(places & HEAP) !== 0, (places & (1 << DEVICE)) !== 0];
    const feedRank = placement?.feedRank() ?? 0;
    return { name: value.name()!, kind: value.kind(), dtype: value.dtype(), dims, onCpu, onGpu, feedRank };
  });
  let fedOutputs: FedOutput[] | undefined;
  return {
    modelName: plan.modelName() ?? '',
    inputs,
    outputs: list(main.outputsLength(), (i) => plan.values(main.outputs(i)!)!.name()!),
    weights,
    weightsSize: Number(plan.weightsSize()),
    userKernels: plan.userKernels() ?? '',
    nodes: () => readNodes(plan),
    fedOutputs: () => (fedOutputs ??= readFedOutputs(plan)),
    makers: () => readMakers(plan),
    providers: list(plan.providersLength(), (i) => plan.providers(i)!.name()!),
    forms: list(plan.providersLength(), (i) => {
      const provider = plan.providers(i)!;
      return list(provider.formsLength(), (k) => [provider.forms(k)!.dtype(), provider.forms(k)!.stored()] as const);
    }),
  };
}

/** The first provider is the core. */
export function isOnDevice(node: Node): boolean {
  return node.provider() !== 0;
}

function readNodes(plan: Plan): PlanNode[] {
  const nodes: PlanNode[] = [];
  for (let g = 0; g < plan.graphsLength(); g++) {
    const graph = plan.graphs(g)!;
    for (let i = 0; i < graph.nodesLength(); i++) {
      const node = graph.nodes(i)!;
      const name = node.origin() || node.name() || node.opType()!;
      nodes.push({
        index: nodes.length,
        name,
        opType: node.opType()!,
        domain: node.domain() ?? '',
        place: node.provider(),
        provider: plan.providers(node.provider())?.name() ?? '',
      });
    }
  }
  return nodes;
}

function readMakers(plan: Plan): Map<string, string> {
  const main = plan.graphs(0)!;
  const byValue = new Map<number, string>();
  for (let n = 0; n < main.nodesLength(); n++) {
    const node = main.nodes(n)!;
    for (let o = 0; o < node.outputsLength(); o++) byValue.set(node.outputs(o)!, node.opType()!);
  }
  const named = new Map<string, string>();
  for (let i = 0; i < main.outputsLength(); i++) {
    const value = main.outputs(i)!;
    const maker = byValue.get(value);
    if (maker !== undefined) named.set(plan.values(value)!.name()!, maker);
  }
  return named;
}

function readFedOutputs(plan: Plan): FedOutput[] {
  const main = plan.graphs(0)!;
  const readers = new Map<number, number>();
  const read = (value: number) => readers.set(value, (readers.get(value) ?? 0) + 1);
  for (let g = 0; g < plan.graphsLength(); g++) {
    const graph = plan.graphs(g)!;
    for (let i = 0; i < graph.nodesLength(); i++)
      for (let j = 0; j < graph.nodes(i)!.inputsLength(); j++) read(graph.nodes(i)!.inputs(j)!);
    for (let i = 0; i < graph.outputsLength(); i++) read(graph.outputs(i)!);
  }
  const feeds = new Map(Array.from({ length: main.inputsLength() }, (_, i) => [main.inputs(i)!, i]));
  const outputs = new Map(
    Array.from({ length: main.outputsLength() }, (_, i) => [main.outputs(i)!, plan.values(main.outputs(i)!)!.name()!]),
  );
  const found: FedOutput[] = [];
  let onGpu = 0;
  for (let n = 0; n < main.nodesLength(); n++) {
    const node = main.nodes(n)!;
    if (node.provider() !== DEVICE) continue;
    for (let input = 0; input < node.inputsLength(); input++) {
      const feed = feeds.get(node.inputs(input)!);
      if (feed === undefined || readers.get(node.inputs(input)!) !== 1) continue;
      for (let output = 0; output < node.outputsLength(); output++) {
        const name = outputs.get(node.outputs(output)!);
        if (name === undefined) continue;
        found.push({ node: onGpu, input, output, feed, name, alone: readers.get(node.outputs(output)!) === 1 });
      }
    }
    onGpu++;
  }
  return found;
}
