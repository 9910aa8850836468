// Whose time it was: from the core's and the kernels' numbers to the nodes of the model.
import type { Tiling } from '../contract/kernel';
import type { ProfileRow } from '../device/profile';
import type { DeviceSession } from '../device/session';
import { DEVICE, type PlanNode } from './plan';
import type { Timeline } from '../timeline';

/** What is shorter is looking, not waiting. */
const SHORTEST_WAIT_MS = 0.02;

/**
 * Adds what the core says of its nodes (ort_run_times in abi.h): an index, begin, inputs ready, end; again and again.
 */
export function addNodeTimes(timeline: Timeline, times: Float64Array, nodes: readonly PlanNode[]): void {
  for (let i = 0; i < times.length; i += 4) {
    const [index, began, ready, ended] = times.subarray(i, i + 4);
    const { name, opType, domain, provider } = nodes[index];
    const args = { node_index: index, op_name: opType, domain, provider };
    // Waiting for its inputs is not the node's own time: the GPU or a copy is at work.
    if (ready - began > SHORTEST_WAIT_MS)
      timeline.add(`inputs of ${name}`, 'node', began, { ...args, waiting: true }, ready);
    timeline.add(name, 'node', Math.min(ready, ended), args, ended);
  }
}

/** The kernels of the nodes on the GPU: the core makes them in the nodes' order, and numbers them upwards. */
export function kernelIds(gpuSession: DeviceSession): number[] {
  return [...gpuSession.kernels.keys()].sort((a, b) => a - b);
}

/** The nodes that the kernels on the GPU are of. */
export function nodesOfKernels(gpuSession: DeviceSession, nodes: readonly PlanNode[]): Map<number, PlanNode> {
  const onGpu = nodes.filter(({ place }) => place === DEVICE);
  return new Map(kernelIds(gpuSession).map((id, i) => [id, onGpu[i]]));
}

/** A dispatch of a profiled run. */
export interface DispatchTime extends Omit<ProfileRow, 'tiling'> {
  /** Of a product, in sessions with a table of tiles. */
  readonly tiling?: ProductTiling;
}

export interface ProductTiling extends Omit<Tiling, 'choices'> {
  readonly choices: readonly string[];
}

/** The rows of a profile, with the node that each dispatch was made for. */
export function withNodes(
  rows: readonly ProfileRow[],
  gpuSession: DeviceSession,
  nodes: readonly PlanNode[],
): DispatchTime[] {
  const owner = nodesOfKernels(gpuSession, nodes);
  return rows.map(({ instance, tiling, ...rest }) => {
    const node = instance === undefined ? undefined : owner.get(instance);
    const row = tiling ? { ...rest, tiling: { ...tiling, choices: tiling.choices() } } : rest;
    return node ? { ...row, node: node.name, op_type: node.opType, node_index: node.index } : row;
  });
}
