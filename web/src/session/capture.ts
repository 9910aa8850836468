// Decides if a model can be captured (`enableGraphCapture`): everything that depends on the feeds' contents must happen
// on the GPU, in one segment. The CPU's results from shapes alone are the same in every run, so they are captured as
// well. This module follows the values that depend on the feeds through the plan, like the core through a run
// (Run::replayable). Captures are ordinary recordings, closed.
import * as flatbuffers from 'flatbuffers';
import { ErrorCode, InputUse, type Node, Plan } from '../schema';
import { RuntimeError } from '../errors';
import { DEVICE, isOnDevice } from './plan';

interface Obstacle {
  readonly node: string;
  readonly opType: string;
  readonly why: string;
}

const SHOWN = 5;

/** Throws invalid_graph, with the nodes that prevent a capture. */
export function checkCapturable(planBytes: Uint8Array, provider: string): void {
  const found = obstacles(Plan.getRootAsPlan(new flatbuffers.ByteBuffer(planBytes)), provider);
  if (found.length === 0) return;
  const lines = found
    .slice(0, SHOWN)
    .map(({ node, opType, why }) => (opType ? `node "${node}" (${opType}) ${why}` : why));
  const more = found.length > SHOWN ? `; and ${found.length - SHOWN} more` : '';
  throw notCapturable(`${lines.join('; ')}${more}`, provider, found[0]);
}

export function notCapturable(
  why: string,
  provider: string,
  { node, opType }: { node?: string; opType?: string } = {},
): RuntimeError {
  const message =
    `enableGraphCapture: this model cannot be captured: ${why}. ` + `Leave the option off, or change the model`;
  return new RuntimeError(ErrorCode.invalid_graph, message, { node, opType, provider });
}

function obstacles(plan: Plan, provider: string): Obstacle[] {
  const walk = new Walk(plan);
  walk.graph(0);
  const { found, onGpu } = walk;
  if (plan.providersLength() > DEVICE + 1) return [{ node: '', opType: '', why: 'its nodes are on several devices' }];
  if (!onGpu && found.size === 0) return [{ node: '', opType: '', why: `no node runs on ${provider}` }];
  return [...found.values()];
}

/** Walks the main graph and its subgraphs, with the values that depend on the feeds' contents. */
class Walk {
  readonly found = new Map<Node, Obstacle>();
  onGpu = false;
  private readonly fed = new Set<number>();
  private readonly nodes = new Map<number, readonly Node[]>();

  constructor(private readonly plan: Plan) {
    const main = plan.graphs(0)!;
    for (let i = 0; i < main.inputsLength(); i++) this.fed.add(main.inputs(i)!);
  }

  graph(index: number): void {
    for (const node of this.nodesOf(index)) {
      if (node.subgraphsLength() > 0) this.control(node);
      else this.kernel(node);
    }
  }

  private nodesOf(index: number): readonly Node[] {
    let nodes = this.nodes.get(index);
    if (!nodes) {
      const graph = this.plan.graphs(index)!;
      nodes = Array.from({ length: graph.nodesLength() }, (_, i) => graph.nodes(i)!);
      this.nodes.set(index, nodes);
    }
    return nodes;
  }

  private kernel(node: Node): void {
    const js = isOnDevice(node);
    let depends = false;
    let reads = false;
    for (let input = 0; input < node.inputsLength(); input++) {
      const use = input < node.usesLength() ? node.uses(input) : InputUse.device;
      if (use === InputUse.shape || !this.fed.has(node.inputs(input)!)) continue;
      depends = true;
      reads ||= !js || use === InputUse.host;
    }
    if (reads)
      this.obstacle(node, js ? 'takes shapes or the like from data of the run' : 'runs on the CPU, on data of the run');
    if (depends) for (let o = 0; o < node.outputsLength(); o++) this.fed.add(node.outputs(o)!);
    this.onGpu ||= js;
  }

  /**
   * Not an obstacle unless an input that decides depends on the feeds. Values that a Loop carries may depend on them
   * only in a later iteration.
   */
  private control(node: Node): void {
    const kind = CONTROL[node.opType()!];
    if (!kind) return this.obstacle(node, 'is control flow over sequences, which are on the CPU');
    const decides = (value: number) => {
      if (this.fed.has(value)) this.obstacle(node, 'is control flow that goes by data of the run');
    };
    for (let i = 0; i < kind.deciding; i++) if (i < node.inputsLength()) decides(node.inputs(i)!);
    for (let before = -1; before !== this.fed.size; ) {
      before = this.fed.size;
      for (let k = 0; k < node.subgraphsLength(); k++) {
        const index = node.subgraphs(k)!.graph();
        const body = this.plan.graphs(index)!;
        if (kind.body)
          for (let i = kind.deciding; i < node.inputsLength(); i++) this.pass(node.inputs(i)!, body.inputs(i)!);
        this.graph(index);
        if (kind.condition) decides(body.outputs(0)!);
        const first = Number(kind.condition);
        for (let o = 0; o < node.outputsLength(); o++) this.pass(body.outputs(first + o)!, node.outputs(o)!);
        if (!kind.body) continue;
        // The outputs of one iteration are the inputs of the next.
        const carried = Math.min(node.inputsLength() - kind.deciding, body.outputsLength() - first);
        for (let i = 0; i < carried; i++) this.pass(body.outputs(first + i)!, body.inputs(kind.deciding + i)!);
      }
    }
  }

  private pass(from: number, to: number): void {
    if (from >= 0 && to >= 0 && this.fed.has(from)) this.fed.add(to);
  }

  private obstacle(node: Node, why: string): void {
    this.found.set(node, { node: node.origin() || node.name() || '', opType: node.opType()!, why });
  }
}

/**
 * By operator: the number of inputs that decide its course, whether the others are inputs of a body, and whether the
 * body's first output is a condition.
 */
const CONTROL: {
  readonly [opType: string]:
    | { readonly deciding: number; readonly body: boolean; readonly condition: boolean }
    | undefined;
} = {
  If: { deciding: 1, body: false, condition: false },
  Loop: { deciding: 2, body: true, condition: true },
  Scan: { deciding: 0, body: true, condition: false },
};
