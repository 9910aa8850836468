// A product on a GPU: a workgroup computes a tile of y from tiles of a and b in workgroup memory; the next tiles are on their
// way into registers meanwhile. z counts parts of k too where there would be too few workgroups otherwise.
import type { Shader } from '../../jsep/kernel';
import { finishText, loadB } from './finish';
import { leftText, type LeftText } from './left';
import { type HardwareSpec, leftName } from './spec';

const NAMES = { matrix: 'gemm', windows: 'conv', phases: 'conv_transpose' } as const;

export function hardwareProduct(spec: HardwareSpec): Shader<HardwareSpec> {
  const variant = `${spec.tileRows}x${spec.tileColumns}x${spec.tileDepth}${spec.turned ? '_turned' : ''}${spec.split ? '_split' : ''}`;
  return { name: `${NAMES[spec.left]}__hw_${variant}`, wgsl: text };
}

function text(spec: HardwareSpec): string {
  const left = leftText(spec);
  const finish = finishText(spec.split ? { bVec: spec.bVec, storage: spec.storage } : spec);
  const { tileRows, tileColumns, tileDepth, rows, split, turned } = spec;
  const quads = tileDepth / 4;
  const across = tileColumns / 4;
  const threads = (tileRows / rows) * across;
  const slotsOfA = Math.ceil((tileRows * quads) / threads);
  const slotsOfB = Math.ceil((tileDepth * across) / threads);
  const each = (count: number, line: (i: number) => string, separator = '\n  ') => Array.from({ length: count }, (_, i) => line(i)).join(separator);
  const slot = (i: number) => (i === 0 ? 'thread' : `thread + ${i * threads}u`);
  const fetches = [
    each(slotsOfA, (i) => fetchA(left, spec, i, `(${slot(i)}) % ${quads}u`)),
    each(slotsOfB, (i) => (turned
      ? fetchTurned(i, `(${slot(i)}) / ${tileColumns}u`, `group.y * ${tileColumns}u + (${slot(i)}) % ${tileColumns}u`)
      : fetchB(spec, left, i, `(${slot(i)}) / ${across}u`, `group.y * ${across}u + (${slot(i)}) % ${across}u`))),
  ].join('\n  ');
  const guard = (count: number, i: number) => ((i + 1) * threads > count ? `if (${slot(i)} < ${count}u) ` : '');
  return `${finish.functions}
var<workgroup> tile_a: array<vec4<f32>, ${tileRows * quads}>;
var<workgroup> tile_b: array<vec4<f32>, ${tileDepth * across}>;

@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  ${split ? 'let part = group.z % u.parts; let z = group.z / u.parts;' : 'let z = group.z;'}
  ${left.base}
  let depth = ${spec.left === 'phases' ? 'u.depth * taps_x * taps_y' : 'u.total_depth'};
  let begin = ${split ? 'part * u.part_depth' : '0u'};
  let end = ${split ? 'min(depth, begin + u.part_depth)' : 'depth'};
  ${each(slotsOfA, (i) => left.row(i, `min(group.x * ${tileRows}u + (${slot(i)}) / ${quads}u, u.m - 1u)`))}
  ${each(slotsOfA, (i) => `var next_a_${i} = vec4<f32>(0.0);`)}
  ${each(slotsOfB, (i) => `var next_b_${i} = vec4<f32>(0.0);`)}
  let column = thread % ${across}u;
  let row_0 = thread / ${across}u * ${rows}u;
  ${each(rows, (i) => `var sum_${i} = vec4<f32>(0.0);`)}
  var k_0 = begin;
  ${fetches}
  loop {
    ${each(slotsOfA, (i) => `${guard(tileRows * quads, i)}{ tile_a[${slot(i)}] = next_a_${i}; }`, '\n    ')}
    ${each(slotsOfB, (i) => `${guard(tileDepth * across, i)}${turned ? storeTurned(i, slot(i), tileColumns) : `{ tile_b[${slot(i)}] = next_b_${i}; }`}`, '\n    ')}
    workgroupBarrier();
    k_0 += ${tileDepth}u;
    if (k_0 < end) {
  ${fetches}
    }
    // Unrolled by two: the whole of it is a little quicker still, but slow to compile.
    for (var quad = 0u; quad < ${quads}u; quad += 2u) {
    ${each(2, (t) => `{ let q = quad + ${t}u;
      ${each(rows, (i) => `let a_${i} = tile_a[(row_0 + ${i}u) * ${quads}u + q];`, '\n      ')}
      ${each(4, (s) => `let b_${s} = tile_b[(q * 4u + ${s}u) * ${across}u + column];`, '\n      ')}
      ${each(rows, (i) => each(4, (s) => `sum_${i} = fma(vec4<f32>(a_${i}[${s}]), b_${s}, sum_${i});`, ' '), '\n      ')}
    }`, '\n    ')}
    }
    workgroupBarrier();
    if (k_0 >= end) { break; }
  }
  let wide_column = group.y * ${across}u + column;
  ${finish.bias(0, 'wide_column')}
  ${each(rows, (i) => `{ let row = group.x * ${tileRows}u + row_0 + ${i}u;
  ${split ? `let placed = row < u.m; let at = (group.z * u.m + row) * u.ld_part;` : left.place('row')}
  if (placed) { ${finish.store(`sum_${i}`, 0, 'row', 'wide_column')} } }`)}
}
`;
}

/** Statements that set next_a_I to the 4 elements of a from k_0 + 4 * `quad`. */
function fetchA(left: LeftText, { aVec, inPlace }: HardwareSpec, i: number, quad: string): string {
  const a = leftName({ inPlace });
  if (aVec === 4) {
    return `{ let k = k_0 / 4u + ${quad}; ${left.decode('k', '(u.depth / 4u)')}
    ${left.tap(i)}
    next_a_${i} = select(vec4<f32>(0.0), vec4<f32>(${a}[at_${i} + channel]), ${left.masked ? `in_${i} && ` : ''}k * 4u < end); }`;
  }
  return `for (var lane = 0u; lane < 4u; lane++) { let k = k_0 + (${quad}) * 4u + lane; ${left.decode('k', 'u.depth')}
    ${left.tap(i)}
    next_a_${i}[lane] = select(0.0, f32(${a}[at_${i} + channel]), ${left.masked ? `in_${i} && ` : ''}k < end); }`;
}

/** Statements that set next_b_I to row k_0 + `row` of b, group `column` of 4 columns. */
function fetchB({ bVec, left: kind }: HardwareSpec, left: LeftText, i: number, row: string, column: string): string {
  const where = kind === 'phases' ? `${left.decode('k', 'u.depth')} let b_at = b_base + (b_row + channel) * u.ldb;` : 'let b_at = b_base + k * u.ldb;';
  return `{ let k = k_0 + ${row}; ${where}
    next_b_${i} = select(vec4<f32>(0.0), ${loadB(bVec, 'b_at', `(${column})`)}, k < end); }`;
}

/** The same where b is [n, k]: next_b_I is elements k_0 + 4 * `quad` and on of column `column`. */
function fetchTurned(i: number, quad: string, column: string): string {
  return `{ let k = k_0 / 4u + ${quad};
    next_b_${i} = select(vec4<f32>(0.0), vec4<f32>(b[b_base + min(${column}, u.n - 1u) * u.ldb + k]), k * 4u < end); }`;
}

/** Neighbouring threads have neighbouring columns: their stores do not meet in a bank. */
function storeTurned(i: number, slot: string, tileColumns: number): string {
  const lane = (s: number) => `tile_b[((${slot}) / ${tileColumns}u * 4u + ${s}u) * ${tileColumns / 4}u + (${slot}) % ${tileColumns}u / 4u][(${slot}) % 4u] = next_b_${i}[${s}];`;
  return `{ ${[0, 1, 2, 3].map(lane).join(' ')} }`;
}
