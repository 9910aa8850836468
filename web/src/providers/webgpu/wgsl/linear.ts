// One thread per item, items in a line, for any number of items.
import type { DeviceTraits } from '../../../contract/kernel';

/** Threads of a workgroup in a linear dispatch, unless a kernel needs another number. */
export const WORKGROUP_SIZE = 64;

/**
 * The workgroups of a linear dispatch. Beyond the device's limit per dimension (65,535 nearly everywhere) they become a
 * rectangle with the fewest superfluous groups; `linearMain` computes its index in both cases.
 */
export function linearWorkgroups(
  threads: number,
  device: Pick<DeviceTraits, 'maxWorkgroupsPerDimension'>,
  size = WORKGROUP_SIZE,
): [number, number, number] {
  const groups = Math.ceil(threads / size);
  const rows = Math.ceil(groups / device.maxWorkgroupsPerDimension);
  return rows <= 1 ? [groups, 1, 1] : [Math.ceil(groups / rows), rows, 1];
}

/**
 * WGSL of the entry point: `body` runs with `i: u32`, the thread's index, for each i below `count`. `items`: a thread
 * runs that many neighbors in turn (dispatch fewer threads by this factor); `body` must not return then.
 */
export function linearMain(body: string, { size = WORKGROUP_SIZE, count = 'u.count', items = 1 } = {}): string {
  const own =
    items === 1
      ? `  if (i >= ${count}) { return; }\n${body}`
      : `  let end = min((i + 1u) * ${items}u, ${count});
  for (var k = i * ${items}u; k < end; k++) {
  let i = k;
${body}
  }`;
  return `
@compute @workgroup_size(${size})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let i = (group.y * groups.x + group.x) * ${size}u + lane;
${own}
}
`;
}
