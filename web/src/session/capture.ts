// Whether a model can be captured (`enableGraphCapture`): all that depends on the feeds' contents must happen on the GPU, in one go.
// What the CPU computes from shapes alone is the same in every run, so it is captured as well.
import * as flatbuffers from 'flatbuffers';
import { ErrorCode, InputUse, Plan, Provider } from '../schema';
import { RuntimeError } from '../errors';

interface Obstacle {
  readonly node: string;
  readonly opType: string;
  readonly why: string;
}

const SHOWN = 5;

/** Throws invalid_graph, naming the nodes that keep a model from being captured. */
export function checkCapturable(planBytes: Uint8Array): void {
  const found = obstacles(Plan.getRootAsPlan(new flatbuffers.ByteBuffer(planBytes)));
  if (found.length === 0) return;
  const lines = found.slice(0, SHOWN).map(({ node, opType, why }) => (opType ? `node "${node}" (${opType}) ${why}` : why));
  const more = found.length > SHOWN ? `; and ${found.length - SHOWN} more` : '';
  throw notCapturable(`${lines.join('; ')}${more}`, found[0]);
}

export function notCapturable(why: string, { node, opType }: { node?: string; opType?: string } = {}): RuntimeError {
  const message = `enableGraphCapture: this model cannot be captured: ${why}. Leave the option off, or change the model`;
  return new RuntimeError(ErrorCode.invalid_graph, message, { node, opType });
}

function obstacles(plan: Plan): Obstacle[] {
  const graph = plan.graphs(0)!;
  // Values whose contents depend on those of the feeds.
  const fed = new Set<number>(Array.from({ length: graph.inputsLength() }, (_, i) => graph.inputs(i)!));
  const found: Obstacle[] = [];
  let onGpu = 0;
  for (let i = 0; i < graph.nodesLength(); i++) {
    const node = graph.nodes(i)!;
    const js = node.provider() === Provider.js;
    const obstacle = (why: string) => found.push({ node: node.origin() || node.name() || '', opType: node.opType()!, why });
    let depends = false;
    let reads = false;
    for (let input = 0; input < node.inputsLength(); input++) {
      const use = input < node.usesLength() ? node.uses(input) : InputUse.device;
      if (use === InputUse.shape || !fed.has(node.inputs(input)!)) continue;
      depends = true;
      reads ||= !js || use === InputUse.host;
    }
    // A subgraph may read any outer value.
    if (node.subgraphsLength() > 0) {
      obstacle('is control flow');
      depends = true;
    } else if (reads) {
      obstacle(js ? 'takes shapes or the like from data of the run' : 'runs on the CPU, on data of the run');
    }
    if (depends) for (let o = 0; o < node.outputsLength(); o++) fed.add(node.outputs(o)!);
    if (js) onGpu++;
  }
  if (onGpu === 0 && found.length === 0) found.push({ node: '', opType: '', why: 'no node runs on webgpu' });
  return found;
}
