// A product on a software adapter: each thread keeps a tile of sums in registers; no barriers, no workgroup memory. A
// load costs as much there as ten multiplications of vec4, so tiles are wide, and threads of a subgroup share their
// loads of b.
import type { Shader } from '../../../../../contract/kernel';
import { type ProductEpilogue, productEpilogue, loadB } from './epilogue';
import { type LeftOperand, leftOperand } from './left_operand';
import { SOFTWARE_THREADS } from './software_tile';
import { SHADER_NAMES, leftName, type SoftwareSpec } from './spec';
import { repeated } from '../../../wgsl/repeated';

export function softwareProduct(spec: SoftwareSpec): Shader<SoftwareSpec> {
  const variant = `${spec.rows}x${spec.columns * 4}${spec.share ? '_shared' : ''}`;
  return { name: `${SHADER_NAMES[spec.left]}__sw_${variant}`, wgsl: text };
}

function text(spec: SoftwareSpec): string {
  const left = leftOperand(spec);
  const epilogue = productEpilogue(spec);
  const { rows, columns, step, along, share } = spec;
  const threads = `group.x * ${SOFTWARE_THREADS}u + lane`;
  const [rowBlock, columnBlock] = along === 'rows' ? [threads, 'group.y'] : ['group.y', threads];
  const sums = repeated(rows, (i) => repeated(columns, (j) => `var sum_${i}_${j} = vec4<f32>(0.0);`));
  return `${share ? 'enable subgroups;\n' : ''}${epilogue.functions}
@compute @workgroup_size(${SOFTWARE_THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32${
    share ? ', @builtin(subgroup_invocation_id) member: u32' : ''
  }) {
  let z = group.z;
  let row_0 = (${rowBlock}) * ${rows}u;
  let column_0 = (${columnBlock}) * ${columns}u;
  ${
    share ? `let shared_row = min(member & 3u, ${step - 1}u);` : 'if (row_0 >= u.m || column_0 * 4u >= u.n) { return; }'
  }
  ${left.base}
  ${repeated(rows, (i) => left.row(i, `min(row_0 + ${i}u, u.m - 1u)`))}
  ${sums}
  ${left.openTaps}
    ${repeated(rows, (i) => left.tap(i))}
    for (var k = 0u; k < u.steps; k++) {
    ${repeated(rows, (i) => loadA(spec, i, left.masked))}
    ${loadsOfB(spec)}
    ${repeated(rows, (i) => repeated(columns, (j) => `sum_${i}_${j} += b_${j} * a_${i};`))}
    }
  ${left.closeTaps}
  ${spec.compact ? storeInLoops(spec, left, epilogue) : storeEach(spec, left, epilogue)}
}
`;
}

function storeEach({ rows, columns }: SoftwareSpec, left: LeftOperand, epilogue: ProductEpilogue): string {
  return `${repeated(columns, (j) => epilogue.bias(j, `(column_0 + ${j}u)`))}
  ${repeated(
    rows,
    (i) => `{ let row = row_0 + ${i}u;
  ${left.place('row')}
  if (placed) {
  ${repeated(columns, (j) => epilogue.store(`sum_${i}_${j}`, j, 'row', `(column_0 + ${j}u)`))}
  } }`,
  )}`;
}

/**
 * Loops whose ends are uniforms, so that no compiler unrolls them: lavapipe's time for a shader grows with the square
 * of the loads and stores in its text, to seconds for an unrolled tile.
 */
function storeInLoops({ rows, columns }: SoftwareSpec, left: LeftOperand, epilogue: ProductEpilogue): string {
  const sums = Array.from({ length: rows * columns }, (_, t) => `sum_${Math.floor(t / columns)}_${t % columns}`);
  return `var sums = array<vec4<f32>, ${rows * columns}>(${sums.join(', ')});
  for (var j = 0u; j < u.tile_columns; j++) {
  let column = column_0 + j;
  ${epilogue.bias(0, 'column')}
  for (var i = 0u; i < u.tile_rows; i++) {
  let row = row_0 + i;
  ${left.place('row')}
  if (placed) { ${epilogue.store(`sums[i * ${columns}u + j]`, 0, 'row', 'column')} }
  }
  }`;
}

/** Declares a_I: the elements of this step. */
function loadA({ aVec, step, tail, inPlace }: SoftwareSpec, i: number, masked: boolean): string {
  const a = leftName({ inPlace });
  const type = step === 1 ? 'f32' : `vec${step}<f32>`;
  const lane = (s: number) => {
    const k = step === 1 ? 'k' : `k * ${step}u + ${s}u`;
    return tail ? `select(0.0, f32(${a}[at_${i} + ${k}]), ${k} < u.depth)` : `f32(${a}[at_${i} + ${k}])`;
  };
  const value =
    aVec === 4
      ? `vec4<f32>(${a}[at_${i} + k])`
      : `${type}(${Array.from({ length: step }, (_, s) => lane(s)).join(', ')})`;
  return `let a_${i} = ${masked ? `select(${type}(0.0), ${value}, in_${i})` : value};`;
}

/**
 * Declares b_J: group J of the columns, a matrix of a column for each row of this step (or a vector, if that is one
 * row).
 */
function loadsOfB({ bVec, step, tail, share, columns }: SoftwareSpec): string {
  const lines: string[] = [];
  const row = (s: string) => {
    const k = `k * ${step}u + ${s}`;
    return `b_base + (b_row + ${tail ? `min(${k}, u.depth - 1u)` : k}) * u.ldb`;
  };
  if (share) {
    lines.push(`let at_b = ${row('shared_row')};`);
    for (let j = 0; j < columns; j++) lines.push(`let own_${j} = ${loadB(bVec, 'at_b', `(column_0 + ${j}u)`)};`);
  }
  const steps = Array.from({ length: step }, (_, s) => s);
  if (!share) lines.push(...steps.map((s) => `let at_b_${s} = ${row(`${s}u`)};`));
  for (let j = 0; j < columns; j++) {
    const vectors = steps.map((s) =>
      share ? `subgroupBroadcast(own_${j}, ${s}u)` : loadB(bVec, `at_b_${s}`, `(column_0 + ${j}u)`),
    );
    lines.push(`let b_${j} = ${step === 1 ? vectors[0] : `mat${step}x4<f32>(${vectors.join(', ')})`};`);
  }
  return lines.join('\n    ');
}
