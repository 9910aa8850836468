// A product on a GPU: a workgroup computes a tile of y from tiles of a and b in workgroup memory; the next tiles of
// each (one or two) are loaded into registers meanwhile. If there were too few workgroups, k is cut: different threads
// of a workgroup compute its slices. Parts of different workgroups (counted by z) are added up by another dispatch
// (parts.ts). Indices of workgroup memory consist of constants, the thread's number, loops that count by one and
// remainders: the browser knows that these are within bounds, and adds no checks.
import type { Shader } from '../../../../../contract/kernel';
import { addBlock, dots, PADDING, realText } from './bytes';
import { type Four, productEpilogue, loadB } from './epilogue';
import { leftOperand, type LeftOperand } from './left_operand';
import { SHADER_NAMES, type HardwareSpec, leftName, type ProductSpec } from './spec';
import { rowOfThread, tileName, workgroupQuads } from './tiles';
import { repeated } from '../../../wgsl/repeated';

/** Statements that set `placed` and `at`, the destination of the sums of a part of k. */
export const PLACE_OF_PART = 'let placed = row < u.m; let at = (group.z * u.m + row) * u.ld_part;';

/** Statements that declare z, which does not count parts of k. */
export function zOf(split: boolean): string {
  return split ? 'let part_of_k = group.z % u.parts; let z = group.z / u.parts;' : 'let z = group.z;';
}

export function hardwareProduct(spec: HardwareSpec): Shader<HardwareSpec> {
  const how = `${spec.bytes ? '_bytes' : ''}${spec.transposed ? '_transposed' : ''}${spec.split ? '_split' : ''}`;
  return { name: `${SHADER_NAMES[spec.left]}__hw_${tileName(spec)}${how}`, wgsl: text };
}

function text(spec: HardwareSpec): string {
  const left = leftOperand(spec);
  const epilogue = productEpilogue(spec.split ? { bVec: spec.bVec, storage: spec.storage } : spec);
  const {
    tileRows,
    tileColumns,
    tileDepth,
    rows,
    columns,
    slices,
    split,
    transposed,
    buffers,
    ahead,
    unrolled,
    bytes,
  } = spec;
  const typeA = bytes ? 'u32' : 'vec4<f32>';
  const typeB = typeOfSums(spec);
  const blocks = bytes === 'blocks';
  const sliced = slices > 1;
  const quads = tileDepth / 4;
  const across = tileColumns / 4;
  // If neighboring rows of a begin in one bank, odd rows have their elements swapped in pairs.
  const swapped = (quads * (bytes ? 4 : 16)) % 128 === 0;
  const placeInA = (at: string) => (swapped ? `(${at}) / 2u * 2u + (${at} + (${at}) / ${quads}u) % 2u` : at);
  const elementOfA = (i: number, t: number) =>
    `(row_0 + ${rowOfThread(i)}u) * ${quads}u + q${swapped ? [' + odd', ' - odd'][t % 2] : ''}`;
  const rowsOfB = bytes ? quads : tileDepth;
  const threadsAcross = across / columns;
  const threads = (tileRows / rows) * threadsAcross;
  const slotsOfA = Math.ceil((tileRows * quads) / threads);
  const slotsOfB = spec.directB ? 0 : Math.ceil((rowsOfB * across) / threads);
  const slot = (i: number) => (i === 0 ? 'thread' : `thread + ${i * threads}u`);
  // If all elements of a that a thread reads of a tile have one k, it steps from tap to tap instead of dividing k.
  const steps = spec.aVec === 4 && threads % quads === 0 ? left.steps : undefined;
  // Prefixes of the registers for the tile being loaded: if there are two, steps alternate.
  const coming = ['next', 'later'].slice(0, ahead);
  const fetches = (tile: string) =>
    [
      repeated(slotsOfA, (i) =>
        fetchA(left, spec, `${tile}_a_${i}`, i, `(${slot(i)}) % ${quads}u`, steps !== undefined),
      ),
      repeated(slotsOfB, (i) =>
        transposed
          ? fetchTransposed(
              `${tile}_b_${i}`,
              `(${slot(i)}) / ${tileColumns}u`,
              `group.y * ${tileColumns}u + (${slot(i)}) % ${tileColumns}u`,
            )
          : fetchB(
              spec,
              left,
              `${tile}_b_${i}`,
              `(${slot(i)}) / ${across}u`,
              `group.y * ${across}u + (${slot(i)}) % ${across}u`,
            ),
      ),
    ].join('\n  ');
  const advance = `k_0 += ${tileDepth}u; ${steps ? steps.advance(`${quads}u`, '(u.depth / 4u)') : ''}`;
  // The multiplied tile is this far behind the loaded one.
  const behind = ahead * tileDepth;
  const waiting = (ahead - 1) * tileDepth;
  // All slices run as long as the deepest, since threads wait for each other. The others load zeros.
  const [more, toFetch] = sliced
    ? ['done < slice_depth', `done + ${waiting}u < slice_depth`]
    : [`k_0 - ${waiting}u < end`, 'k_0 < end'];
  const [sizeA, sizeB] = [slices * tileRows * quads, slices * rowsOfB * across];
  const [inA, inB] = [
    `${sliced ? 'tiles_a + ' : ''}${buffers === 2 ? `turn % 2u * ${sizeA}u + ` : ''}`,
    `${sliced ? 'tiles_b + ' : ''}${buffers === 2 ? `turn % 2u * ${sizeB}u + ` : ''}`,
  ];
  const guard = (count: number, i: number) => ((i + 1) * threads > count ? `if (${slot(i)} < ${count}u) ` : '');
  const stores = (tile: string) =>
    [
      repeated(
        slotsOfA,
        (i) => `${guard(tileRows * quads, i)}{ tile_a[${inA}${placeInA(slot(i))}] = ${tile}_a_${i}; }`,
        '\n    ',
      ),
      repeated(
        slotsOfB,
        (i) =>
          guard(rowsOfB * across, i) +
          (transposed
            ? storeTransposed(`${tile}_b_${i}`, inB, slot(i), tileColumns)
            : `{ tile_b[${inB}${slot(i)}] = ${tile}_b_${i}; }`),
        '\n    ',
      ),
    ].join('\n    ');
  const sum = (i: number, c: number) => (sliced ? `total_${i}` : `sum_${i}_${c}`);
  const room = workgroupQuads(spec);
  const loadsOfB = (s: number, c: number) =>
    spec.directB
      ? `select(vec4<f32>(0.0), ${loadB(spec.bVec, `b_quad + ${s}u * u.ldb`, `column_${c}`)}, k_quad + ${s}u < end)`
      : `tile_b[${inB}(q * 4u + ${s}u) * ${across}u + column + ${c * threadsAcross}u]`;
  const real = (value: string, c: number) => (bytes && !blocks ? `real(${value}, row, column_${c})` : value);
  const finish = (i: number) => repeated(columns, (c) => epilogue.store(real(sum(i, c), c), c, 'row', `column_${c}`));
  /** Four of k, for rows and columns of the thread, from registers that begin with a and b. */
  const into = blocks ? 'part' : 'sum';
  const products = bytes
    ? `${repeated(columns, (c) => `let b_${c} = tile_b[${inB}q * ${across}u + column + ${c * threadsAcross}u];`)}
      ${repeated(rows, (i) => repeated(columns, (c) => `${into}_${i}_${c} += ${dots(`a_${i}`, `b_${c}`)};`))}`
    : `${repeated(4, (s) => repeated(columns, (c) => `let b_${s}_${c} = ${loadsOfB(s, c)};`, ' '), '\n      ')}
      ${repeated(
        rows,
        (i) =>
          repeated(
            columns,
            (c) => repeated(4, (s) => `sum_${i}_${c} = fma(vec4<f32>(a_${i}[${s}]), b_${s}_${c}, sum_${i}_${c});`, ' '),
            '\n      ',
          ),
        '\n      ',
      )}`;
  /** Multiplies a tile, while another one is loaded into its registers; `following` is multiplied next. */
  const step = (tile: string, following: string) => `${buffers === 2 ? '' : stores(tile)}
    workgroupBarrier();
    ${advance}
    ${sliced ? `done += ${tileDepth}u;` : ''}
    if (${toFetch}) {
  ${fetches(tile)}
    }
    // Unrolled in part: fully unrolled it would be a little faster, but slow to compile.
    ${sliced ? `if (k_0 - ${behind}u < end) {` : ''}
    ${blocks ? repeated(rows, (i) => repeated(columns, (c) => `var part_${i}_${c} = vec4<i32>();`)) : ''}
    for (var part = 0u; part < ${quads / unrolled}u; part++) {
    ${repeated(
      unrolled,
      (t) => `{ let q = part * ${unrolled}u + ${t}u;
      ${spec.directB ? `let k_quad = k_0 - ${behind}u + q * 4u; let b_quad = b_base + k_quad * u.ldb;` : ''}
      ${repeated(rows, (i) => `let a_${i} = tile_a[${inA}${elementOfA(i, t)}];`, '\n      ')}
      ${products}
    }`,
      '\n    ',
    )}
    }
    ${blocks ? addBlock(spec, `(k_0 - ${behind}u)`) : ''}
    ${sliced ? '}' : ''}
    ${buffers === 2 ? '' : 'workgroupBarrier();'}
    if (!(${more})) { break; }
    ${buffers === 2 ? `turn++;\n    ${stores(following)}` : ''}`;
  return `${epilogue.functions}
${bytes && !blocks ? realText(spec) : ''}
var<workgroup> tile_a: array<${typeA}, ${room.a}>;
${spec.directB ? '' : `var<workgroup> tile_b: array<${typeB}, ${room.b}>;`}

@compute @workgroup_size(${slices * threads})
fn main(@builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) ${sliced ? 'invocation' : 'thread'}: u32) {
  ${sliced ? `let slice = invocation / ${threads}u; let thread = invocation % ${threads}u;` : ''}
  ${zOf(split)}
  ${left.base}
  let depth = ${spec.left === 'phases' ? 'u.depth * taps_x * taps_y' : 'u.total_depth'};
  ${bytes && left.masked ? PADDING : ''}
  ${rangeOfPart(spec)}
  ${repeated(slotsOfA, (i) => left.row(i, `min(group.x * ${tileRows}u + (${slot(i)}) / ${quads}u, u.m - 1u)`))}
  ${repeated(ahead, (t) => repeated(slotsOfA, (i) => `var ${coming[t]}_a_${i} = ${typeA}();`))}
  ${repeated(ahead, (t) => repeated(slotsOfB, (i) => `var ${coming[t]}_b_${i} = ${typeB}();`))}
  // Pairs of threads have the same columns, and the next ones the same rows: on NVIDIA, loads from workgroup memory
  // with equal rows or columns are twice as fast.
  let odd = thread % 2u;
  let column = thread / 2u % ${threadsAcross}u;
  let row_0 = thread / ${2 * threadsAcross}u * ${2 * rows}u + odd;
  ${repeated(columns, (c) => `let column_${c} = group.y * ${across}u + column + ${c * threadsAcross}u;`)}
  ${repeated(rows, (i) => repeated(columns, (c) => `var sum_${i}_${c} = ${blocks ? 'vec4<f32>' : typeB}();`))}
  var k_0 = begin;
  ${
    sliced
      ? `let tiles_a = slice * ${tileRows * quads}u; let tiles_b = slice * ${rowsOfB * across}u; var done = 0u;`
      : ''
  }
  ${steps ? steps.start(`k_0 / 4u + thread % ${quads}u`, '(u.depth / 4u)') : ''}
  ${buffers === 2 ? 'var turn = 0u;' : ''}
  ${fetches('next')}
  ${ahead === 2 ? `${advance}\n  ${fetches('later')}` : ''}
  ${buffers === 2 ? stores('next') : ''}
  loop {
    ${coming.map((tile, i) => step(tile, coming[(i + 1) % ahead])).join('\n    ')}
  }
  ${sliced && buffers === 2 ? 'workgroupBarrier();' : ''}
  ${sliced ? addSlices(spec, threads) : ''}
  ${repeated(columns, (c) => epilogue.bias(c, `column_${c}`))}
  ${repeated(
    finishedRows(spec),
    (i) => `{ let row = group.x * ${tileRows}u + row_0 +
      ${sliced ? `slice * ${rowOfThread(finishedRows(spec))}u + ` : ''}${rowOfThread(i)}u;
  ${split ? PLACE_OF_PART : left.place('row')}
  if (placed) { ${finish(i)} } }`,
  )}
}
`;
}

/**
 * Statements that declare the first k and the end of k of a thread, which may have a part's, and for all slices their
 * depth.
 */
export function rangeOfPart(spec: Pick<HardwareSpec, 'split' | 'slices' | 'tileDepth'>): string {
  if (!spec.split) return rangeOfSlice('0u', 'depth', spec);
  return `let part_begin = part_of_k * u.part_depth;
  ${rangeOfSlice('part_begin', 'min(depth, part_begin + u.part_depth)', spec)}`;
}

/** The same for a slice's share of the range from `first` to `last`. */
function rangeOfSlice(
  first: string,
  last: string,
  { slices, tileDepth }: Pick<HardwareSpec, 'slices' | 'tileDepth'>,
): string {
  if (slices === 1) return `let begin = ${first};\n  let end = ${last};`;
  return `let last = ${last};
  let slice_depth = (last - ${first} + ${slices * tileDepth - 1}u) / ${slices * tileDepth}u * ${tileDepth}u;
  let begin = ${first} + slice * slice_depth;
  let end = min(last, begin + slice_depth);`;
}

/** The type for four columns; b's tiles have it, too. */
function typeOfSums({ bytes }: HardwareSpec): string {
  return bytes ? 'vec4<i32>' : 'vec4<f32>';
}

/** Rows that a thread finishes itself. With more slices than rows, some have none. */
function finishedRows({ rows, slices }: HardwareSpec): number {
  return Math.max(1, rows / slices);
}

/**
 * Statements that declare total_I: the sums of all slices in those rows of the thread that its own slice finishes. The
 * tiles are not needed any more: half of the rows go into the memory of each; all into a's if b has none, and into b's
 * if a's has words.
 */
function addSlices(spec: HardwareSpec, threads: number): string {
  const { slices, rows, directB, bytes } = spec;
  const each = directB || bytes ? rows : rows / 2;
  const inA = bytes ? 0 : each;
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const place = (slice: string, row: string) => `[((${slice}) * ${each}u + ${row}) * ${threads}u + thread]`;
  const all = (tile: string, row: string) =>
    numbers(slices)
      .map((slice) => `tile_${tile}${place(`${slice}u`, row)}`)
      .join(' + ');
  return [
    ...numbers(rows).map((i) => `tile_${i < inA ? 'a' : 'b'}${place('slice', `${i % each}u`)} = sum_${i}_0;`),
    'workgroupBarrier();',
    slices > rows ? `if (slice >= ${rows}u) { return; }` : '',
    ...numbers(finishedRows(spec)).map(
      (i) => `var total_${i} = ${typeOfSums(spec)}(); { let row = slice * ${finishedRows(spec)}u + ${i}u;
    ${inA > 0 ? `if (row < ${inA}u) { total_${i} = ${all('a', 'row')}; }` : ''}
    ${directB ? '' : `${inA > 0 ? 'else ' : ''}{ total_${i} = ${all('b', `(row - ${inA}u)`)}; }`} }`,
    ),
  ].join('\n  ');
}

/**
 * Statements that set `to` to the 4 elements of a from k_0 + 4 * `quad`, of the thread's row I. As halves only if they
 * are read 4 at a time; the same for b.
 */
export function fetchA(
  left: LeftOperand,
  { aVec, inPlace, bytes }: ProductSpec & Pick<HardwareSpec, 'bytes'>,
  to: string,
  i: number,
  quad: string,
  stepped: boolean,
  four: Four = 'vec4<f32>',
): string {
  const a = leftName({ inPlace });
  const before = `{ let k = k_0 / 4u + ${quad}; ${stepped ? '' : left.decode('k', '(u.depth / 4u)')}
    ${left.tap(i)}`;
  if (bytes) {
    const word = `a[at_${i} + channel]`;
    return `${before}
    ${to} = select(0u, ${left.masked ? `select(padding, ${word}, in_${i})` : word}, k * 4u < end); }`;
  }
  if (aVec === 4) {
    return `${before}
    ${to} = select(${four}(), ${four}(${a}[at_${i} + channel]),
      ${left.masked ? `in_${i} && ` : ''}k * 4u < end); }`;
  }
  return `for (var lane = 0u; lane < 4u; lane++) { let k = k_0 + (${quad}) * 4u + lane; ${left.decode('k', 'u.depth')}
    ${left.tap(i)}
    ${to}[lane] = select(0.0, f32(${a}[at_${i} + channel]), ${left.masked ? `in_${i} && ` : ''}k < end); }`;
}

/** Statements that set `to` to row k_0 + `row` of b, group `column` of 4 columns. */
export function fetchB(
  { bVec, left: kind, bytes }: ProductSpec & Pick<HardwareSpec, 'bytes'>,
  left: LeftOperand,
  to: string,
  row: string,
  column: string,
  four: Four = 'vec4<f32>',
): string {
  // Beyond k, a has zeros.
  if (bytes) return `${to} = b[b_base + (k_0 / 4u + ${row}) * u.ldb + ${column}];`;
  const where =
    kind === 'phases'
      ? `${left.decode('k', 'u.depth')} let b_at = b_base + (b_row + channel) * u.ldb;`
      : 'let b_at = b_base + k * u.ldb;';
  return `{ let k = k_0 + ${row}; ${where}
    ${to} = select(${four}(), ${loadB(bVec, 'b_at', `(${column})`, four)}, k < end); }`;
}

/** The same if b is [n, k]: elements k_0 + 4 * `quad` and on of column `column`. */
export function fetchTransposed(to: string, quad: string, column: string, four: Four = 'vec4<f32>'): string {
  return `{ let k = k_0 / 4u + ${quad};
    ${to} = select(${four}(), ${four}(b[b_base + min(${column}, u.n - 1u) * u.ldb + k]), k * 4u < end); }`;
}

/** Neighboring threads have neighboring columns: their stores use different banks. */
function storeTransposed(from: string, first: string, slot: string, tileColumns: number): string {
  const lane = (s: number) =>
    `tile_b[${first}((${slot}) / ${tileColumns}u * 4u + ${s}u) * ${tileColumns / 4}u
        + (${slot}) % ${tileColumns}u / 4u][(${slot}) % 4u] = ${from}[${s}];`;
  return `{ ${[0, 1, 2, 3].map(lane).join(' ')} }`;
}
