// Flash attention's block loop for GPUs: scores live in a workgroup's memory.
import type { Shader } from '../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { BASES, count, type FlashSpec, headOf, keysOfBlock, preamble, queryOf, sinks } from './flash_text';
import { LEAST, MASKED, shareOf } from './masking';

/** A workgroup has some rows; tiles of keys, then of values, pass through its memory. Several threads share a row. */
export const FLASH_TILES: Shader<FlashSpec> = {
  name: 'flash_attention__hw_tiles',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, threads, rows, columns, sharing, split } = spec;
    const shares = threads / rows;
    const pitch = Math.max(size, valueSize) + 1;
    const scores = count(columns / shares);
    const sums = count(Math.ceil(valueSize / shares));
    const tile = (name: string, width: number, base: string, step: string) => `    ${shared(columns * width, threads)}
      let row = at / ${width}u;
      tile[row * ${pitch}u + at % ${width}u] = ${load(
        storage,
        lanes,
        `${name}[${base} + min(start + row, end - 1u) * ${step} + at % ${width}u]`,
      )};
    }`;
    const place = (j: number) => inside(j, valueSize, shares);
    const write = (to: string, value: (j: number) => string) =>
      sums
        .map(
          (j) => `if (member + ${j * shares}u < ${valueSize}u) { y[${to} + member + ${j * shares}u] = ${value(j)}; }`,
        )
        .join('\n    ');
    return `${preamble(spec)}
var<workgroup> queries: array<V, ${rows * size}>;
var<workgroup> tile: array<V, ${columns * pitch}>;
var<workgroup> weights: array<f32, ${Math.max(threads, rows * columns)}>;
${spec.masking.lengths ? 'var<workgroup> span: vec2<u32>;' : ''}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let index = group.y * groups.x + group.x;
  if (index >= u.count) { return; }
${BASES}
  let first = unit % u.blocks * ${rows}u;
  let slot = lane / ${shares}u;
  let member = lane % ${shares}u;
  let own = min(first + slot, u.rows - 1u);
  let head = ${headOf('own', sharing)};
  let query = ${queryOf('own', sharing)};
  ${shared(rows * size, threads)}
    let row = min(first + at / ${size}u, u.rows - 1u);
    queries[at] = ${load(
      storage,
      lanes,
      `${names[0]}[q_base + (${headOf('row', sharing)}) * u.q_1 + ${queryOf('row', sharing)} * u.q_2 + at % ${size}u]`,
    )} * u.scale;
  }
  ${sums.map((j) => `var y${j} = V(0.0);`).join(' ')}
  var largest = ${sinks(spec) ? 'sink_of(head)' : `f32(${LEAST})`};
  var sum = ${sinks(spec) ? 'select(0.0, 1.0, member == 0u)' : '0.0'};
${keysOfBlock(spec, spec.masking.lengths)}
  for (var start = begin; start < end; start += ${columns}u) {
${tile(names[1], size, 'k_base', 'u.k_2')}
    workgroupBarrier();
    ${scores.map((j) => `var d${j} = V(0.0);`).join(' ')}
    for (var d = 0u; d < ${size}u; d++) {
      let q = queries[slot * ${size}u + d];
      ${scores.map((j) => `d${j} += q * tile[(member + ${j * shares}u) * ${pitch}u + d];`).join(' ')}
    }
    ${scores
      .map(
        (j) => `let key${j} = start + member + ${j * shares}u;
    let s${j} = select(seen(batch, head, query, min(key${j}, end - 1u), capped(total(d${j}))), ${MASKED},
      key${j} >= end);
    weights[slot * ${columns}u + member + ${j * shares}u] = s${j};`,
      )
      .join('\n    ')}
    workgroupBarrier();
${tile(names[2], valueSize, 'v_base', 'u.v_2')}
    var larger = largest;
    for (var c = 0u; c < ${columns}u; c++) { larger = max(larger, weights[slot * ${columns}u + c]); }
    let fade = exp(largest - larger);
    largest = larger;
    workgroupBarrier();
    ${scores
      .map(
        (j) => `let w${j} = weight_of(s${j}, larger); weights[slot * ${columns}u + member + ${j * shares}u] = w${j};`,
      )
      .join('\n    ')}
    sum = sum * fade + ${scores.map((j) => `w${j}`).join(' + ')};
    workgroupBarrier();
    ${sums.map((j) => `y${j} *= fade;`).join(' ')}
    for (var c = 0u; c < ${columns}u; c++) {
      let w = weights[slot * ${columns}u + c];
      ${sums.map((j) => `y${j} += w * tile[c * ${pitch}u + ${place(j)}];`).join(' ')}
    }
    workgroupBarrier();
  }
  weights[lane] = sum;
  workgroupBarrier();
  var whole = 0.0;
  for (var c = 0u; c < ${shares}u; c++) { whole += weights[slot * ${shares}u + c]; }
  if (first + slot < u.rows) {
    ${
      split
        ? `let at = ((batch * u.kv_heads + shared_head) * u.rows + own) * u.splits + part;
    if (member == 0u) { state[at] = vec2<f32>(largest, whole); }
    ${write(`at * ${valueSize}u`, (j) => `y${j}`)}`
        : `let share = ${shareOf('whole')};
    let to = y_base + head * u.y_1 + query * u.y_2;
    ${write('to', (j) => stored(storage, lanes, `y${j} * share`))}`
    }
  }
}
`;
  },
};

/** The place of this thread's vector `j`; threads that have none read the last one. */
function inside(j: number, valueSize: number, shares: number): string {
  const at = `member + ${j * shares}u`;
  return (j + 1) * shares > valueSize ? `min(${at}, ${valueSize - 1}u)` : at;
}

/** The head of a loop in which threads share elements `at`. It counts by one: so compilers know where `at` lies. */
function shared(elements: number, threads: number): string {
  const turns = Math.ceil(elements / threads);
  const guard = elements % threads === 0 ? '' : ` if (at >= ${elements}u) { break; }`;
  return `for (var turn = 0u; turn < ${turns}u; turn++) { let at = lane + turn * ${threads}u;${guard}`;
}
