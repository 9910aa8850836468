// A product of halves on a GPU that multiplies matrices (chromium-experimental-subgroup-matrix): a workgroup computes a
// tile of y from tiles of a and b in workgroup memory, each of its subgroups a part of it, by matrices that lie across
// the subgroup's registers. Sums are float32. What becomes of the sums is each thread's again.
import type { DeviceTraits, Shader, SubgroupMatrix } from '../../../contract/kernel';
import { productEpilogue } from './epilogue';
import { fetchA, fetchB, fetchTransposed } from './hardware';
import { leftOperand } from './left_operand';
import { SHADER_NAMES, type ProductSpec } from './spec';

export interface MatrixTile {
  /** Rows and columns of a workgroup's tile. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Depth of the tiles of a and b. */
  readonly tileDepth: number;
  /** Rows and columns of a subgroup's part. */
  readonly partRows: number;
  readonly partColumns: number;
}

export interface SubgroupMatrixSpec extends ProductSpec, MatrixTile {
  readonly matrix: SubgroupMatrix;
  /** Whether b is [n, k], read 4 elements of k at a time. */
  readonly transposed: boolean;
}

const LARGE: MatrixTile = { tileRows: 128, tileColumns: 128, tileDepth: 32, partRows: 64, partColumns: 32 };
const SMALL: MatrixTile = { tileRows: 64, tileColumns: 64, tileDepth: 32, partRows: 32, partColumns: 32 };
/** Tiles that keep a large GPU busy: large ones, small ones. */
const BUSY = 128;
const HALF_BUSY = 48;
/** Elements behind each row of a tile, so that rows do not begin in one bank. */
const PADDING = 8;

/** The tile with which such a product pays, if it does, and the device has the memory. */
export function matrixTile(
  p: { m: number; n: number; k: number; z: number },
  { subgroupMatrix: matrix, maxWorkgroupStorage }: Pick<DeviceTraits, 'subgroupMatrix' | 'maxWorkgroupStorage'>,
): MatrixTile | undefined {
  if (!matrix) return undefined;
  const count = ({ tileRows, tileColumns }: MatrixTile) =>
    Math.ceil(p.m / tileRows) * Math.ceil(p.n / tileColumns) * p.z;
  if (p.k < SMALL.tileDepth || p.m < SMALL.partRows || p.n < SMALL.partColumns) return undefined;
  const pays = (tile: MatrixTile, busy: number) =>
    count(tile) >= busy && workgroupBytes(tile, matrix) <= maxWorkgroupStorage;
  return pays(LARGE, BUSY) ? LARGE : pays(SMALL, HALF_BUSY) ? SMALL : undefined;
}

/** At most: of b [n, k] it may be a little less. */
function workgroupBytes(tile: MatrixTile, { m, n }: SubgroupMatrix): number {
  const parts = (tile.tileRows / tile.partRows) * (tile.tileColumns / tile.partColumns);
  const rows = Math.max(tile.tileColumns * (tile.tileDepth + PADDING), tile.tileDepth * (tile.tileColumns + PADDING));
  return 2 * (tile.tileRows * (tile.tileDepth + PADDING) + rows) + 4 * parts * m * n;
}

export function subgroupMatrixProduct(spec: SubgroupMatrixSpec): Shader<SubgroupMatrixSpec> {
  const tile = `${spec.tileRows}x${spec.tileColumns}x${spec.tileDepth}`;
  return { name: `${SHADER_NAMES[spec.left]}__matrices_${tile}${spec.transposed ? '_transposed' : ''}`, wgsl: text };
}

function text(spec: SubgroupMatrixSpec): string {
  const { tileRows, tileColumns, tileDepth, partRows, partColumns, transposed } = spec;
  const { m, n, k, subgroup } = spec.matrix;
  const left = leftOperand(spec);
  const epilogue = productEpilogue(spec);
  const partsAcross = tileColumns / partColumns;
  const parts = (tileRows / partRows) * partsAcross;
  const threads = parts * subgroup;
  const [quads, across] = [tileDepth / 4, tileColumns / 4];
  const [pitchA, pitchB] = [tileDepth + PADDING, (transposed ? tileDepth : tileColumns) + PADDING];
  const each = (count: number, line: (i: number) => string, separator = '\n  ') =>
    Array.from({ length: count }, (_, i) => line(i)).join(separator);
  const slot = (i: number) => (i === 0 ? 'thread' : `thread + ${i * threads}u`);
  const [slotsOfA, slotsOfB] = [(tileRows * quads) / threads, (tileDepth * across) / threads];
  const fetches = [
    each(slotsOfA, (i) => fetchA(left, spec, `next_a_${i}`, i, `(${slot(i)}) % ${quads}u`, false)),
    each(slotsOfB, (i) =>
      transposed
        ? fetchTransposed(
            `next_b_${i}`,
            `(${slot(i)}) % ${quads}u`,
            `group.y * ${tileColumns}u + (${slot(i)}) / ${quads}u`,
          )
        : fetchB(
            spec,
            left,
            `next_b_${i}`,
            `(${slot(i)}) / ${across}u`,
            `group.y * ${across}u + (${slot(i)}) % ${across}u`,
          ),
    ),
  ].join('\n  ');
  const put = (tile: string, i: number, pitch: number, wide: number) => `{
      let at = (${slot(i)}) / ${wide}u * ${pitch}u + (${slot(i)}) % ${wide}u * 4u;
      let halves = vec4<f16>(clamp(next_${tile}_${i}, vec4<f32>(-65504.0), vec4<f32>(65504.0)));
      ${each(4, (s) => `tile_${tile}[at + ${s}u] = halves[${s}];`, ' ')}
    }`;
  const [down, right] = [partRows / m, partColumns / n];
  const load = (side: 'Left' | 'Right', major: 'row' | 'col', at: string) =>
    side === 'Left'
      ? `subgroupMatrixLoad<Left, ${major}_major>(&tile_a, ${at}, ${pitchA}u)`
      : `subgroupMatrixLoad<Right, ${major}_major>(&tile_b, ${at}, ${pitchB}u)`;
  const loadA = (i: number, q: number) => load('Left', 'row', `(row_0 + ${i * m}u) * ${pitchA}u + ${q * k}u`);
  const loadB = (j: number, q: number) =>
    transposed
      ? load('Right', 'col', `(column_0 + ${j * n}u) * ${pitchB}u + ${q * k}u`)
      : load('Right', 'row', `${q * k * pitchB}u + column_0 + ${j * n}u`);
  const add = (sum: string, a: string, b: string) => `${sum} = subgroupMatrixMultiplyAccumulate(${a}, ${b}, ${sum});`;
  const step = (q: number) => `{
      ${each(down, (i) => `let a_${i} = ${loadA(i, q)};`, '\n      ')}
      ${each(right, (j) => `let b_${j} = ${loadB(j, q)};`, '\n      ')}
      ${each(down, (i) => each(right, (j) => add(`sum_${i}_${j}`, `a_${i}`, `b_${j}`), ' '), '\n      ')}
    }`;
  const finished = (m * n) / 4 / subgroup;
  const finish = (i: number, j: number) => `
  subgroupMatrixStore<row_major>(&sums, part * ${m * n}u, sum_${i}_${j}, ${n}u);
  workgroupBarrier();
  ${each(
    finished,
    (f) => `{ let place = thread % ${subgroup}u + ${f * subgroup}u;
    let row = group.x * ${tileRows}u + row_0 + ${i * m}u + place / ${n / 4}u;
    let column = group.y * ${across}u + (column_0 + ${j * n}u) / 4u + place % ${n / 4}u;
    let from_sums = part * ${m * n}u + place * 4u;
    let sum = vec4<f32>(${each(4, (s) => `sums[from_sums + ${s}u]`, ', ')});
    ${left.place('row')}
    if (placed) { ${epilogue.bias(0, 'column')} ${epilogue.store('sum', 0, 'row', 'column')} } }`,
  )}
  workgroupBarrier();`;
  return `enable f16;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
${epilogue.functions}
alias Left = subgroup_matrix_left<f16, ${k}, ${m}>;
alias Right = subgroup_matrix_right<f16, ${n}, ${k}>;
alias Sum = subgroup_matrix_result<f32, ${n}, ${m}>;
var<workgroup> tile_a: array<f16, ${tileRows * pitchA}>;
var<workgroup> tile_b: array<f16, ${(transposed ? tileColumns : tileDepth) * pitchB}>;
var<workgroup> sums: array<f32, ${parts * m * n}>;

@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let z = group.z;
  ${left.base}
  let end = ${spec.left === 'phases' ? 'u.depth * taps_x * taps_y' : 'u.total_depth'};
  let part = thread / ${subgroup}u;
  let row_0 = part / ${partsAcross}u * ${partRows}u;
  let column_0 = part % ${partsAcross}u * ${partColumns}u;
  ${each(slotsOfA, (i) => left.row(i, `min(group.x * ${tileRows}u + (${slot(i)}) / ${quads}u, u.m - 1u)`))}
  ${each(slotsOfA, (i) => `var next_a_${i} = vec4<f32>(0.0);`)}
  ${each(slotsOfB, (i) => `var next_b_${i} = vec4<f32>(0.0);`)}
  ${each(down, (i) => each(right, (j) => `var sum_${i}_${j}: Sum;`, ' '))}
  var k_0 = 0u;
  ${fetches}
  loop {
    ${each(slotsOfA, (i) => put('a', i, pitchA, quads), '\n    ')}
    ${each(slotsOfB, (i) => put('b', i, pitchB, transposed ? quads : across), '\n    ')}
    workgroupBarrier();
    k_0 += ${tileDepth}u;
    if (k_0 < end) {
  ${fetches}
    }
    ${each(tileDepth / k, step, '\n    ')}
    workgroupBarrier();
    if (k_0 >= end) { break; }
  }
  ${each(down, (i) => each(right, (j) => finish(i, j)))}
}
`;
}
