// Assigns times to the model's nodes, from the numbers of the core and of kernels.
import type { Tiling } from '../contract/kernel';
import type { ProfileRow } from '../device/profile';
import type { DeviceSession } from '../device/session';
import { DEVICE, type PlanNode } from './plan';
import type { Timeline } from '../timeline';

/** Shorter times are checks, not waits. */
const SHORTEST_WAIT_MS = 0.02;

/** Adds the core's times of its nodes (ort_run_times in abi.h): for each node an index, start, inputs ready, end. */
export function addNodeTimes(timeline: Timeline, times: Float64Array, nodes: readonly PlanNode[]): void {
  for (let i = 0; i < times.length; i += 4) {
    const [index, began, ready, ended] = times.subarray(i, i + 4);
    const { name, opType, domain, provider } = nodes[index];
    const args = { node_index: index, op_name: opType, domain, provider };
    // Waiting for inputs is not the node's own time: the GPU or a copy is running.
    if (ready - began > SHORTEST_WAIT_MS)
      timeline.add(`inputs of ${name}`, 'node', began, { ...args, waiting: true }, ready);
    timeline.add(name, 'node', Math.min(ready, ended), args, ended);
  }
}

/** The kernels of the nodes on the GPU: the core makes them in the nodes' order, and numbers them upwards. */
export function kernelIds(gpuSession: DeviceSession): number[] {
  return [...gpuSession.kernels.keys()].sort((a, b) => a - b);
}

/** The nodes of a device's kernels. @param place the provider's in the plan. */
export function nodesOfKernels(
  session: DeviceSession,
  nodes: readonly PlanNode[],
  place = DEVICE,
): Map<number, PlanNode> {
  const there = nodes.filter((node) => node.place === place);
  return new Map(kernelIds(session).map((id, i) => [id, there[i]]));
}

/** A dispatch of a profiled run. */
export interface DispatchTime extends Omit<ProfileRow, 'tiling'> {
  readonly provider: string;
  /** For a product, in sessions with a table of tiles. */
  readonly tiling?: ProductTiling;
}

export interface ProductTiling extends Omit<Tiling, 'choices'> {
  readonly choices: readonly string[];
}

/** The rows of a profile, with the node of each dispatch. @param place the provider's in the plan. */
export function withNodes(
  rows: readonly ProfileRow[],
  session: DeviceSession,
  nodes: readonly PlanNode[],
  place = DEVICE,
): DispatchTime[] {
  const owner = nodesOfKernels(session, nodes, place);
  const provider = session.provider.name;
  return rows.map(({ instance, tiling, ...rest }) => {
    const node = instance === undefined ? undefined : owner.get(instance);
    const told = { ...rest, provider };
    const row = tiling ? { ...told, tiling: { ...tiling, choices: tiling.choices() } } : told;
    return node ? { ...row, node: node.name, op_type: node.opType, node_index: node.index } : row;
  });
}
