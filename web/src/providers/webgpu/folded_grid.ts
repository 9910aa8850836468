// Dispatches with more workgroups in one dimension than the device allows (65,535 nearly everywhere), for any kernel:
// they run as a rectangle of the same number of workgroups, and each workgroup computes its place in the kernel's own
// grid.
import type { Shader, Spec, Uniforms } from '../../contract/kernel';
import { linearWorkgroups } from './wgsl/linear';

type Grid = readonly [number, number, number];

export interface Folded<S extends Spec> {
  readonly shader: Shader<S>;
  readonly uniforms: Uniforms;
  readonly workgroups: Grid;
}

/** The unchanged dispatch if it fits, otherwise folded. */
export function foldGrid<S extends Spec>(shader: Shader<S>, uniforms: Uniforms, grid: Grid, limit: number): Folded<S> {
  if (grid.every((count) => count <= limit)) return { shader, uniforms, workgroups: grid };
  const workgroups = linearWorkgroups(grid[0] * grid[1] * grid[2], { maxWorkgroupsPerDimension: limit }, 1);
  // The name distinguishes the two pipelines, like a spec.
  return {
    shader: { name: `${shader.name}_folded`, wgsl: (spec) => foldedText(shader.wgsl(spec)) },
    uniforms: { ...uniforms, grid },
    workgroups,
  };
}

const MAIN = /@compute\s+@workgroup_size\(([^)]*)\)\s*fn main\(([\s\S]*?)\)\s*\{/;
const PARAMETER = /@builtin\((\w+)\)\s*(\w+)\s*:\s*([\w<>]+)/g;

/** The module with an entry point that computes the workgroup's place in the grid u.grid_0 x u.grid_1 x u.grid_2. */
export function foldedText(text: string): string {
  const found = MAIN.exec(text);
  if (!found) throw new Error('a shader without `@compute @workgroup_size(…) fn main(…)`');
  const parameters = [...found[2].matchAll(PARAMETER)].map(([whole, builtin, name]) => ({ whole, builtin, name }));
  const sizes = [
    ...found[1]
      .split(',')
      .map((size) => size.trim())
      .filter(Boolean),
    '1',
    '1',
  ].slice(0, 3);
  const replaced: { readonly [builtin: string]: string } = {
    workgroup_id: 'grid_group',
    num_workgroups: 'vec3<u32>(u.grid_0, u.grid_1, u.grid_2)',
    global_invocation_id: `grid_group * vec3<u32>(${sizes.join(', ')}) + folded_local`,
  };
  const kept = parameters.filter(({ builtin }) => !(builtin in replaced));
  if (parameters.some(({ builtin }) => builtin === 'global_invocation_id'))
    kept.push({ whole: '@builtin(local_invocation_id) folded_local: vec3<u32>', builtin: '', name: '' });
  const lines = parameters.flatMap(({ builtin, name }) =>
    builtin in replaced ? [`  let ${name} = ${replaced[builtin]};`] : [],
  );
  const head = `@compute @workgroup_size(${found[1]})
fn main(${[
    ...kept.map(({ whole }) => whole),
    '@builtin(workgroup_id) folded_group: vec3<u32>',
    '@builtin(num_workgroups) folded_groups: vec3<u32>',
  ].join(', ')}) {
  let flat_group = folded_group.y * folded_groups.x + folded_group.x;
  if (flat_group >= u.grid_0 * u.grid_1 * u.grid_2) { return; }
  let grid_group = vec3<u32>(flat_group % u.grid_0, flat_group / u.grid_0 % u.grid_1,
    flat_group / (u.grid_0 * u.grid_1));
${lines.join('\n')}`;
  return text.slice(0, found.index) + head + text.slice(found.index + found[0].length);
}
