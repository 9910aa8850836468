// A product of halves on a GPU with matrix units (chromium-experimental-subgroup-matrix): a workgroup computes a tile
// of y from tiles of a and b in workgroup memory. Each of its subgroups computes a part of the tile (or of k of such a
// part), by matrices across the subgroup's registers. Sums are float32. Single threads then apply the product's end to
// the sums.
import type { Shader, SubgroupMatrix } from '../../../../../contract/kernel';
import { productEpilogue } from './epilogue';
import { fetchA, fetchB, fetchTransposed, PLACE_OF_PART, rangeOfPart, zOf } from './hardware';
import { leftOperand } from './left_operand';
import { type MatrixTile, matrixTileName, PADDING } from './matrix_tiles';
import { SHADER_NAMES, type TiledSpec } from './spec';
import { repeated } from '../../../wgsl/repeated';

export interface SubgroupMatrixSpec extends TiledSpec, MatrixTile {
  readonly matrix: SubgroupMatrix;
  /** True if both operands are halves in memory, and need no conversion. */
  readonly stored: boolean;
}

export function subgroupMatrixProduct(spec: SubgroupMatrixSpec): Shader<SubgroupMatrixSpec> {
  const how = `${spec.transposed ? '_transposed' : ''}${spec.split ? '_split' : ''}`;
  return { name: `${SHADER_NAMES[spec.left]}__${matrixTileName({ tile: spec, parts: 1 })}${how}`, wgsl: text };
}

function text(spec: SubgroupMatrixSpec): string {
  const { tileRows, tileColumns, tileDepth, partRows, partColumns, transposed, slices, split } = spec;
  const sliced = slices > 1;
  const { m, n, k, subgroup } = spec.matrix;
  const four = spec.stored ? 'vec4<f16>' : 'vec4<f32>';
  const left = leftOperand(spec);
  const epilogue = productEpilogue(split ? { bVec: spec.bVec, storage: spec.storage } : spec);
  const partsAcross = tileColumns / partColumns;
  const parts = (tileRows / partRows) * partsAcross;
  const threads = parts * subgroup;
  const [quads, across] = [tileDepth / 4, tileColumns / 4];
  const [pitchA, pitchB] = [tileDepth + PADDING, (transposed ? tileDepth : tileColumns) + PADDING];
  const slot = (i: number) => (i === 0 ? 'thread' : `thread + ${i * threads}u`);
  const [slotsOfA, slotsOfB] = [(tileRows * quads) / threads, (tileDepth * across) / threads];
  // All elements of a that a thread reads of a tile have one k: it steps from tap to tap instead of dividing k.
  const steps = spec.aVec === 4 && threads % quads === 0 ? left.steps : undefined;
  const fetches = [
    repeated(slotsOfA, (i) =>
      fetchA(left, spec, `next_a_${i}`, i, `(${slot(i)}) % ${quads}u`, steps !== undefined, four),
    ),
    repeated(slotsOfB, (i) =>
      transposed
        ? fetchTransposed(
            `next_b_${i}`,
            `(${slot(i)}) % ${quads}u`,
            `group.y * ${tileColumns}u + (${slot(i)}) / ${quads}u`,
            four,
          )
        : fetchB(
            spec,
            left,
            `next_b_${i}`,
            `(${slot(i)}) / ${across}u`,
            `group.y * ${across}u + (${slot(i)}) % ${across}u`,
            four,
          ),
    ),
  ].join('\n  ');
  const [sizeA, sizeB] = [tileRows * pitchA, (transposed ? tileColumns : tileDepth) * pitchB];
  const [inA, inB] = sliced ? [`slice * ${sizeA}u + `, `slice * ${sizeB}u + `] : ['', ''];
  const half = (next: string) =>
    spec.stored ? next : `vec4<f16>(clamp(${next}, vec4<f32>(-65504.0), vec4<f32>(65504.0)))`;
  const put = (tile: string, i: number, pitch: number, wide: number) => `{
      let at = ${tile === 'a' ? inA : inB}(${slot(i)}) / ${wide}u * ${pitch}u + (${slot(i)}) % ${wide}u * 4u;
      let halves = ${half(`next_${tile}_${i}`)};
      ${repeated(4, (s) => `tile_${tile}[at + ${s}u] = halves[${s}];`, ' ')}
    }`;
  const [down, right] = [partRows / m, partColumns / n];
  const load = (side: 'Left' | 'Right', major: 'row' | 'col', at: string) =>
    side === 'Left'
      ? `subgroupMatrixLoad<Left, ${major}_major>(&tile_a, ${at}, ${pitchA}u)`
      : `subgroupMatrixLoad<Right, ${major}_major>(&tile_b, ${at}, ${pitchB}u)`;
  const loadA = (i: number, q: number) => load('Left', 'row', `${inA}(row_0 + ${i * m}u) * ${pitchA}u + ${q * k}u`);
  const loadB = (j: number, q: number) =>
    transposed
      ? load('Right', 'col', `${inB}(column_0 + ${j * n}u) * ${pitchB}u + ${q * k}u`)
      : load('Right', 'row', `${inB}${q * k * pitchB}u + column_0 + ${j * n}u`);
  const add = (sum: string, a: string, b: string) => `${sum} = subgroupMatrixMultiplyAccumulate(${a}, ${b}, ${sum});`;
  const step = (q: number) => `{
      ${repeated(down, (i) => `let a_${i} = ${loadA(i, q)};`, '\n      ')}
      ${repeated(right, (j) => `let b_${j} = ${loadB(j, q)};`, '\n      ')}
      ${repeated(down, (i) => repeated(right, (j) => add(`sum_${i}_${j}`, `a_${i}`, `b_${j}`), ' '), '\n      ')}
    }`;
  // All slices run as long as the deepest, since threads wait for each other. The others load zeros.
  const more = sliced ? 'done < slice_depth' : 'k_0 < end';
  const quadsOfSum = (m * n) / 4;
  const finished = Math.ceil(quadsOfSum / subgroup / slices);
  const own = sliced ? `(slice * ${parts}u + part)` : 'part';
  const sumOf = (s: number) => `vec4<f32>(${repeated(4, (e) => `sums[from_sums + ${s * parts * m * n + e}u]`, ', ')})`;
  const finish = (i: number, j: number) => `
  subgroupMatrixStore<row_major>(&sums, ${own} * ${m * n}u, sum_${i}_${j}, ${n}u);
  workgroupBarrier();
  ${repeated(
    finished,
    (f) => `{ let place = lane + ${f * slices * subgroup}u;
    let row = group.x * ${tileRows}u + row_0 + ${i * m}u + place / ${n / 4}u;
    let column = group.y * ${across}u + (column_0 + ${j * n}u) / 4u + place % ${n / 4}u;
    let from_sums = part * ${m * n}u + place * 4u;
    let sum = ${repeated(slices, sumOf, ' + ')};
    ${split ? PLACE_OF_PART : left.place('row')}
    if (${(f + 1) * slices * subgroup > quadsOfSum ? `place < ${quadsOfSum}u && ` : ''}placed) {
      ${epilogue.bias(0, 'column')} ${epilogue.store('sum', 0, 'row', 'column')} } }`,
  )}
  workgroupBarrier();`;
  return `enable f16;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
${epilogue.functions}
alias Left = subgroup_matrix_left<f16, ${k}, ${m}>;
alias Right = subgroup_matrix_right<f16, ${n}, ${k}>;
alias Sum = subgroup_matrix_result<f32, ${n}, ${m}>;
var<workgroup> tile_a: array<f16, ${slices * sizeA}>;
var<workgroup> tile_b: array<f16, ${slices * sizeB}>;
var<workgroup> sums: array<f32, ${slices * parts * m * n}>;

@compute @workgroup_size(${slices * threads})
fn main(@builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) ${sliced ? 'invocation' : 'thread'}: u32) {
  ${sliced ? `let slice = invocation / ${threads}u; let thread = invocation % ${threads}u;` : ''}
  ${zOf(split)}
  ${left.base}
  let depth = ${spec.left === 'phases' ? 'u.depth * taps_x * taps_y' : 'u.total_depth'};
  ${rangeOfPart(spec)}
  let part = thread / ${subgroup}u;
  let lane = ${sliced ? `slice * ${subgroup}u + ` : ''}thread % ${subgroup}u;
  let row_0 = part / ${partsAcross}u * ${partRows}u;
  let column_0 = part % ${partsAcross}u * ${partColumns}u;
  ${repeated(slotsOfA, (i) => left.row(i, `min(group.x * ${tileRows}u + (${slot(i)}) / ${quads}u, u.m - 1u)`))}
  ${repeated(slotsOfA, (i) => `var next_a_${i} = ${four}();`)}
  ${repeated(slotsOfB, (i) => `var next_b_${i} = ${four}();`)}
  ${repeated(down, (i) => repeated(right, (j) => `var sum_${i}_${j}: Sum;`, ' '))}
  var k_0 = begin;
  ${sliced ? 'var done = 0u;' : ''}
  ${steps ? steps.start(`k_0 / 4u + thread % ${quads}u`, '(u.depth / 4u)') : ''}
  ${fetches}
  loop {
    ${repeated(slotsOfA, (i) => put('a', i, pitchA, quads), '\n    ')}
    ${repeated(slotsOfB, (i) => put('b', i, pitchB, transposed ? quads : across), '\n    ')}
    workgroupBarrier();
    k_0 += ${tileDepth}u; ${steps ? steps.advance(`${quads}u`, '(u.depth / 4u)') : ''}
    ${sliced ? `done += ${tileDepth}u;` : ''}
    if (${more}) {
  ${fetches}
    }
    ${repeated(tileDepth / k, step, '\n    ')}
    workgroupBarrier();
    if (!(${more})) { break; }
  }
  ${repeated(down, (i) => repeated(right, (j) => finish(i, j)))}
}
`;
}
