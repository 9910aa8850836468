// A product of few rows on a GPU: only the time to read the matrix matters, which is read once. Threads of a workgroup
// divide k among themselves.
import type { Shader } from '../../../../../contract/kernel';
import { productEpilogue, loadB } from './epilogue';
import { leftOperand } from './left_operand';
import type { ProductSpec } from './spec';

/** Left operand: a matrix of at most `rows` rows. */
export interface VectorSpec extends ProductSpec {
  readonly rows: number;
  /** Groups of 4 columns of a workgroup: a power of two. Its threads divide k for each. */
  readonly across: number;
}

const THREADS = 256;
/** Workgroups that occupy a large GPU: if columns are few, each has fewer of them, and more parts of k. */
const BUSY = 128;
/** Loads of b in flight at the same time. */
const AHEAD = 4;

/** The number of groups of 4 columns in a workgroup, for n columns: two at least, which memory reads at once. */
export function columnGroups(n: number): number {
  return [8, 4].find((across) => n >= 4 * across * BUSY) ?? 2;
}

export function vectorProduct(spec: VectorSpec): Shader<VectorSpec> {
  return { name: `gemm__hw_vector_${spec.rows}`, wgsl: text };
}

function text(spec: VectorSpec): string {
  const left = leftOperand(spec);
  const epilogue = productEpilogue(spec);
  const { rows, bVec, across } = spec;
  const parts = THREADS / across;
  const each = (line: (i: number) => string) => Array.from({ length: rows }, (_, i) => line(i)).join('\n  ');
  return `${epilogue.functions}
var<workgroup> sums: array<vec4<f32>, ${THREADS * rows}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let z = group.z;
  ${left.base}
  let lane = thread % ${across}u;
  let part = thread / ${across}u;
  let column = group.x * ${across}u + lane;
  let row_0 = group.y * ${rows}u;
  ${each((i) => left.row(i, `min(row_0 + ${i}u, u.m - 1u)`))}
  ${each((i) => `var sum_${i} = vec4<f32>(0.0);`)}
  var k = part;
  for (; k + ${(AHEAD - 1) * parts}u < u.total_depth; k += ${AHEAD * parts}u) {
    ${Array.from(
      { length: AHEAD },
      (_, t) =>
        `let b_at_${t} = b_base + (k + ${t * parts}u) * u.ldb; let b_${t} = ${loadB(bVec, `b_at_${t}`, 'column')};`,
    ).join('\n    ')}
    ${Array.from({ length: AHEAD }, (_, t) =>
      each((i) => `sum_${i} += f32(a[at_${i} + k + ${t * parts}u]) * b_${t};`),
    ).join('\n    ')}
  }
  for (; k < u.total_depth; k += ${parts}u) {
    let b_at = b_base + k * u.ldb;
    let b_k = ${loadB(bVec, 'b_at', 'column')};
    ${each((i) => `sum_${i} += f32(a[at_${i} + k]) * b_k;`)}
  }
  ${each((i) => `sums[${i * THREADS}u + thread] = sum_${i};`)}
  workgroupBarrier();
  for (var half = ${parts / 2}u; half > 0u; half = half / 2u) {
    if (part < half) {
      ${each((i) => `sums[${i * THREADS}u + thread] += sums[${i * THREADS}u + thread + half * ${across}u];`)}
    }
    workgroupBarrier();
  }
  if (part == 0u) {
  ${epilogue.bias(0, 'column')}
  ${each(
    (i) => `{ let row = row_0 + ${i}u;
  ${left.place('row')}
  if (placed) { ${epilogue.store(`sums[${i * THREADS}u + lane]`, 0, 'row', 'column')} } }`,
  )}
  }
}
`;
}
