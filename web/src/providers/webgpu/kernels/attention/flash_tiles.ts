// Flash attention's block loop for GPUs: scores are in a workgroup's memory.
import type { Shader } from '../../../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { BASES, count, type FlashSpec, headOf, keysOfBlock, preamble, queryOf, sinks } from './flash_text';
import { LEAST, MASKED, shareOf } from './masking';

/**
 * A workgroup has some rows; tiles of keys, then of values, pass through its memory. Several threads share a row, or a
 * few rows: consecutive threads have different rows and the same keys, which a GPU reads only once for them.
 */
export const FLASH_TILES: Shader<FlashSpec> = {
  name: 'flash_attention__hw_tiles',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, threads, rows, rowsOfThread, columns, sharing, split } = spec;
    const slots = rows / rowsOfThread;
    const shares = threads / slots;
    // One more than is used: elements below each other are then in different banks of the memory.
    const [pitch, queryPitch, weightPitch] = [Math.max(size, valueSize) + 1, size + 1, columns + 1];
    const own = count(rowsOfThread);
    const scores = count(columns / shares);
    const sums = count(Math.ceil(valueSize / shares));
    /** A line for each row of the thread, and each of its keys or vectors of values. */
    const lines = (others: readonly number[], line: (r: number, j: number) => string, pad = '    ') =>
      own.flatMap((r) => others.map((j) => line(r, j))).join(`\n${pad}`);
    const each = (line: (r: number) => string, pad = '    ') => own.map(line).join(`\n${pad}`);
    const rowOf = (r: number) => (r === 0 ? 'slot' : `(slot + ${r * slots}u)`);
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
var<workgroup> queries: array<V, ${rows * queryPitch}>;
var<workgroup> tile: array<V, ${columns * pitch}>;
var<workgroup> weights: array<f32, ${Math.max(threads * rowsOfThread, rows * weightPitch)}>;
${spec.masking.lengths ? 'var<workgroup> span: vec2<u32>;' : ''}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let index = group.y * groups.x + group.x;
  if (index >= u.count) { return; }
${BASES}
  let first = unit % u.blocks * ${rows}u;
  let slot = lane % ${slots}u;
  let member = lane / ${slots}u;
  ${each(
    (r) => `let own${r} = min(first + ${rowOf(r)}, u.rows - 1u);
  let head${r} = ${headOf(`own${r}`, sharing)};
  let query${r} = ${queryOf(`own${r}`, sharing)};`,
    '  ',
  )}
  ${shared(rows * size, threads)}
    let row = min(first + at / ${size}u, u.rows - 1u);
    queries[at / ${size}u * ${queryPitch}u + at % ${size}u] = ${load(
      storage,
      lanes,
      `${names[0]}[q_base + (${headOf('row', sharing)}) * u.q_1 + ${queryOf('row', sharing)} * u.q_2 + at % ${size}u]`,
    )} * u.scale;
  }
  ${lines(sums, (r, j) => `var y${r}_${j} = V(0.0);`, '  ')}
  ${each(
    (r) => `var largest${r} = ${sinks(spec) ? `sink_of(head${r})` : `f32(${LEAST})`};
  var sum${r} = ${sinks(spec) ? 'select(0.0, 1.0, member == 0u)' : '0.0'};`,
    '  ',
  )}
${keysOfBlock(spec, spec.masking.lengths)}
  for (var start = begin; start < end; start += ${columns}u) {
${tile(names[1], size, 'k_base', 'u.k_2')}
    workgroupBarrier();
    ${lines(scores, (r, j) => `var d${r}_${j} = V(0.0);`)}
    for (var d = 0u; d < ${size}u; d++) {
      ${each((r) => `let q${r} = queries[${rowOf(r)} * ${queryPitch}u + d];`, '      ')}
      ${scores
        .map(
          (j) => `let k${j} = tile[(member + ${j * shares}u) * ${pitch}u + d];
      ${each((r) => `d${r}_${j} += q${r} * k${j};`, '      ')}`,
        )
        .join('\n      ')}
    }
    ${scores.map((j) => `let key${j} = start + member + ${j * shares}u;`).join('\n    ')}
    ${lines(
      scores,
      (r, j) =>
        `let s${r}_${j} = select(seen(batch, head${r}, query${r}, min(key${j}, end - 1u), capped(total(d${r}_${j}))),
      ${MASKED}, key${j} >= end);
    weights[${rowOf(r)} * ${weightPitch}u + member + ${j * shares}u] = s${r}_${j};`,
    )}
    workgroupBarrier();
${tile(names[2], valueSize, 'v_base', 'u.v_2')}
    ${each((r) => `var larger${r} = largest${r};`)}
    for (var c = 0u; c < ${columns}u; c++) {
      ${each((r) => `larger${r} = max(larger${r}, weights[${rowOf(r)} * ${weightPitch}u + c]);`, '      ')}
    }
    ${each(
      (r) => `let fade${r} = exp(largest${r} - larger${r});
    largest${r} = larger${r};`,
    )}
    workgroupBarrier();
    ${lines(
      scores,
      (r, j) => `let w${r}_${j} = weight_of(s${r}_${j}, larger${r});
    weights[${rowOf(r)} * ${weightPitch}u + member + ${j * shares}u] = w${r}_${j};`,
    )}
    ${each((r) => `sum${r} = sum${r} * fade${r} + ${scores.map((j) => `w${r}_${j}`).join(' + ')};`)}
    workgroupBarrier();
    ${lines(sums, (r, j) => `y${r}_${j} *= fade${r};`)}
    for (var c = 0u; c < ${columns}u; c++) {
      ${each((r) => `let w${r} = weights[${rowOf(r)} * ${weightPitch}u + c];`, '      ')}
      ${sums
        .map(
          (j) => `let v${j} = tile[c * ${pitch}u + ${place(j)}];
      ${each((r) => `y${r}_${j} += w${r} * v${j};`, '      ')}`,
        )
        .join('\n      ')}
    }
    workgroupBarrier();
  }
  ${each((r) => `weights[${r * threads}u + lane] = sum${r};`, '  ')}
  workgroupBarrier();
  ${each(
    (r) => `if (first + ${rowOf(r)} < u.rows) {
    var whole = 0.0;
    for (var c = 0u; c < ${shares}u; c++) { whole += weights[c * ${slots}u + ${r * threads}u + slot]; }
    ${
      split
        ? `let at = ((batch * u.kv_heads + shared_head) * u.rows + own${r}) * u.splits + part;
    if (member == 0u) { state[at] = vec2<f32>(largest${r}, whole); }
    ${write(`at * ${valueSize}u`, (j) => `y${r}_${j}`)}`
        : `let share = ${shareOf('whole')};
    let to = y_base + head${r} * u.y_1 + query${r} * u.y_2;
    ${write('to', (j) => stored(storage, lanes, `y${r}_${j} * share`))}`
    }
  }`,
    '  ',
  )}
}
`;
  },
};

/** The place of this thread's vector `j`; threads without one read the last one. */
function inside(j: number, valueSize: number, shares: number): string {
  const at = `member + ${j * shares}u`;
  return (j + 1) * shares > valueSize ? `min(${at}, ${valueSize - 1}u)` : at;
}

/**
 * The head of a loop in which threads share elements `at`. It counts by one, so that compilers know the range of `at`.
 */
function shared(elements: number, threads: number): string {
  const turns = Math.ceil(elements / threads);
  const guard = elements % threads === 0 ? '' : ` if (at >= ${elements}u) { break; }`;
  return `for (var turn = 0u; turn < ${turns}u; turn++) { let at = lane + turn * ${threads}u;${guard}`;
}
