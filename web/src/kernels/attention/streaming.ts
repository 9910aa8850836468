// Attention in one dispatch: scores live in registers or workgroup memory, block of keys by block of keys, with a
// softmax that corrects itself whenever it meets a larger score. A row is a query of a head; heads that share keys have
// their rows together. Where there are few rows and many keys, as when a model writes word by word, several threads or
// workgroups share the keys of a row, and a second dispatch joins what they found.
import type { Binding, Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { DType } from '../../schema';
import { type Lanes, laneType, load, stored } from '../../wgsl/lanes';
import { bindingCount } from '../../wgsl/large';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { Attention, Heads } from './core';
import { MASKED, MASKING_F32, MASKING_I32, maskingParts, type MaskingSpec, maskingText, LEAST } from './masking';

interface StreamingSpec extends Spec {
  readonly lanes: Lanes;
  /** Vectors of `lanes` elements in a query, and in a value. */
  readonly size: number;
  readonly valueSize: number;
  /** Storage of q, k, v and y. */
  readonly storage: StorageType;
  /** The bindings where q, k and v lie. */
  readonly names: readonly [string, string, string];
  readonly masking: MaskingSpec;
  /** Rows and keys of a block. */
  readonly rows: number;
  readonly columns: number;
  /** Whether several heads share keys. */
  readonly sharing: boolean;
  /** Whether several share the keys of a row. */
  readonly split: boolean;
}

const MOST_VECTORS = 64;
const THREADS = 128;
const LARGEST_GRID = 65535;

/** Dispatches it, where the heads' form allows; false where it does not. */
export function streamingAttention(ctx: Context, t: Attention): boolean {
  const { batch, heads, kvHeads, queries, keys } = t;
  if (t.debug || keys === 0) return false;
  const parts = [t.q, t.k, t.v, t.y];
  const fours = [t.size, t.valueSize, ...parts.flatMap(({ strides, offset = 0 }) => [...strides, offset])].every(
    (step) => step % 4 === 0,
  );
  const lanes: Lanes = fours ? 4 : 1;
  const [size, valueSize] = [t.size / lanes, t.valueSize / lanes];
  if (Math.max(size, valueSize) > MOST_VECTORS || parts.some(({ tensor }) => tensor.storage !== t.y.tensor.storage))
    return false;
  const sharing = heads / kvHeads;
  const rowCount = queries * sharing;
  const block = ctx.device.software
    ? threadBlock(rowCount, size + valueSize)
    : tileBlock(ctx, rowCount, size, valueSize, lanes);
  if (!block) return false;
  const { rows, columns } = block;
  const blocks = batch * kvHeads * Math.ceil(rowCount / rows);
  const splits = splitsOf(ctx.device.software, blocks, keys);
  if (blocks * splits > LARGEST_GRID * LARGEST_GRID) return false;
  // Parts of one tensor are bound once.
  const tensors: Tensor[] = [];
  const nameOf = ({ tensor }: Heads): string => {
    const found = tensors.findIndex(({ id }) => id === tensor.id);
    return `x${found < 0 ? tensors.push(tensor) - 1 : found}`;
  };
  const names = [nameOf(t.q), nameOf(t.k), nameOf(t.v)] as const;
  const masking = maskingParts(t.masking);
  const split = splits > 1;
  if (
    bindingCount(tensors, ctx.device) + Object.keys(masking.inputs).length + (split ? 2 : 1) >
    ctx.device.maxStorageBuffersPerStage
  )
    return false;
  const bound = (tensor: Tensor): Binding => ({ tensor, vec: lanes });
  const place = ({ strides, offset = 0 }: Heads) => [...strides, offset].map((step) => step / lanes);
  const found = split ? foundBy(ctx, batch * heads * queries, splits, t.valueSize) : undefined;
  ctx.dispatch({
    shader: ctx.device.software ? SOFTWARE : HARDWARE,
    spec: {
      lanes,
      size,
      valueSize,
      storage: t.y.tensor.storage,
      names,
      masking: masking.spec,
      rows,
      columns,
      sharing: sharing > 1,
      split,
    },
    inputs: { ...Object.fromEntries(tensors.map((tensor, i) => [`x${i}`, bound(tensor)])), ...masking.inputs },
    outputs: found ? { y: bound(found.sums), state: { tensor: found.state, vec: 2 } } : { y: bound(t.y.tensor) },
    uniforms: {
      count: blocks * splits,
      splits,
      blocks: Math.ceil(rowCount / rows),
      rows: rowCount,
      kv_heads: kvHeads,
      sharing,
      queries,
      keys,
      q: place(t.q),
      k: place(t.k),
      v: place(t.v),
      y: place(t.y),
      scale: t.scale,
      ...masking.uniforms,
    },
    i32: MASKING_I32,
    f32: ['scale', ...MASKING_F32],
    workgroups: ctx.device.software
      ? linearWorkgroups(blocks * splits, ctx.device)
      : linearWorkgroups(blocks * splits, ctx.device, 1),
  });
  if (!found) return true;
  const { sink } = t.masking;
  const vectors = batch * heads * queries * valueSize;
  ctx.dispatch({
    shader: JOIN,
    spec: { lanes, valueSize, storage: t.y.tensor.storage, sharing: sharing > 1, sink: masking.spec.sink },
    inputs: { sums: bound(found.sums), state: { tensor: found.state, vec: 2 }, ...(sink && { sink }) },
    outputs: { y: bound(t.y.tensor) },
    uniforms: { count: vectors, splits, rows: rowCount, kv_heads: kvHeads, sharing, y: place(t.y) },
    workgroups: linearWorkgroups(vectors, ctx.device),
  });
  return true;
}

interface Block {
  readonly rows: number;
  readonly columns: number;
}

/** What a thread holds in registers. */
function threadBlock(rowCount: number, vectors: number): Block {
  const rows = vectors > 16 ? 2 : 4;
  return { rows: rowCount >= rows ? rows : rowCount >= 2 ? 2 : 1, columns: 4 };
}

/** What a workgroup's memory holds; few rows leave more threads to each. */
function tileBlock(ctx: Context, rowCount: number, size: number, valueSize: number, lanes: number): Block | undefined {
  const bytes = ({ rows, columns }: Block) =>
    4 * (lanes * (rows * size + columns * (Math.max(size, valueSize) + 1)) + rows * columns);
  const few: Block[] =
    rowCount <= 8
      ? [
          { rows: 4, columns: 32 },
          { rows: 8, columns: 32 },
        ]
      : [];
  const blocks = [...few, ...[32, 16, 8].map((columns) => ({ rows: 16, columns }))];
  return blocks.find((block) => bytes(block) <= ctx.device.maxWorkgroupStorage);
}

/** How many share the keys of a row: so many that all of the device has something to do. */
function splitsOf(software: boolean, blocks: number, keys: number): number {
  const [wanted, least] = software ? [128, 32] : [256, 128];
  return blocks * 2 > wanted ? 1 : Math.min(Math.ceil(wanted / blocks), Math.ceil(keys / least));
}

/** What each finds of a row: values weighted and added, and the largest score and the sum of weights. */
function foundBy(ctx: Context, rows: number, splits: number, valueSize: number): { sums: Tensor; state: Tensor } {
  return {
    sums: ctx.temp([rows, splits, valueSize], DType.float32),
    state: ctx.temp([rows, splits, 2], DType.float32),
  };
}

const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Aliases, and where the heads of a block begin. */
function preamble({ lanes, masking }: StreamingSpec): string {
  return `alias V = ${laneType('f32', lanes)};
fn total(v: V) -> f32 { return ${lanes === 1 ? 'v' : 'v.x + v.y + v.z + v.w'}; }
${maskingText(masking)}`;
}

const PLACES = `  let part = index % u.splits;
  let unit = index / u.splits;
  let shared_head = unit / u.blocks % u.kv_heads;
  let batch = unit / u.blocks / u.kv_heads;
  let q_base = u.q_3 + batch * u.q_0;
  let k_base = u.k_3 + batch * u.k_0 + shared_head * u.k_1;
  let v_base = u.v_3 + batch * u.v_0 + shared_head * u.v_1;
  let y_base = u.y_3 + batch * u.y_0;`;

/** A row's head and query: neighbors are heads of one query. */
const headOf = (row: string, sharing: boolean) =>
  sharing ? `shared_head * u.sharing + ${row} % u.sharing` : 'shared_head';
const queryOf = (row: string, sharing: boolean) => (sharing ? `${row} / u.sharing` : row);

/**
 * The keys from `begin` to `end` that this part of the block looks at, whole tiles of them.
 * @param agreed where there are barriers: a compiler must see that all threads of a workgroup go by the same numbers,
 * and it does not
 *   where they come from a tensor.
 */
function keysOfBlock({ rows, columns, sharing, split }: StreamingSpec, agreed: boolean): string {
  const first = `begin_of(batch, ${queryOf('first', sharing)})`;
  const last = `end_of(batch, ${queryOf(`min(first + ${rows - 1}u, u.rows - 1u)`, sharing)})`;
  const whole = agreed
    ? `  if (lane == 0u) { span = vec2<u32>(${first}, ${last}); }
  let keys = workgroupUniformLoad(&span);
  let first_key = keys.x;
  let last_key = keys.y;`
    : `  let first_key = ${first};
  let last_key = ${last};`;
  return split
    ? `${whole}
  let each = (max(last_key, first_key) - first_key + u.splits * ${columns}u - 1u) / (u.splits * ${columns}u)
    * ${columns}u;
  let begin = first_key + part * each;
  let end = min(last_key, begin + each);`
    : `${whole}
  let begin = first_key;
  let end = last_key;`;
}

/** Whether a row begins with a score of its own: where keys are shared, the end sees to it. */
const sinks = ({ split, masking }: StreamingSpec) => !split && masking.sink !== 'none';

/** No barriers: a thread has a few rows, and all of their numbers in registers. */
const SOFTWARE: Shader<StreamingSpec> = {
  name: 'attention__sw_rows',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, rows, columns, sharing, split } = spec;
    const read = (name: string, index: string) => `${load(storage, lanes, `${name}[${index}]`)}`;
    const each = (line: (r: number) => string) => count(rows).map(line).join(' ');
    const start = (r: number) =>
      sinks(spec)
        ? `var largest${r} = sink_of(head${r}); var sum${r} = 1.0;`
        : `var largest${r} = f32(${LEAST}); var sum${r} = 0.0;`;
    const finish = (r: number) =>
      split
        ? `let at${r} = ((batch * u.kv_heads + shared_head) * u.rows + row${r}) * u.splits + part;
          state[at${r}] = vec2<f32>(largest${r}, sum${r});
  ${count(valueSize)
    .map((d) => `y[at${r} * ${valueSize}u + ${d}u] = y${r}_${d};`)
    .join(' ')}`
        : `let share${r} = select(1.0 / sum${r}, 0.0, sum${r} == 0.0);
          let to${r} = y_base + head${r} * u.y_1 + query${r} * u.y_2;
  ${count(valueSize)
    .map((d) => `y[to${r} + ${d}u] = ${stored(storage, lanes, `y${r}_${d} * share${r}`)};`)
    .join(' ')}`;
    const body = `  let index = i;
${PLACES}
  let first = unit % u.blocks * ${rows}u;
  ${each(
    (r) =>
      `let row${r} = min(first + ${r}u, u.rows - 1u); let head${r} = ${headOf(`row${r}`, sharing)};
        let query${r} = ${queryOf(`row${r}`, sharing)};`,
  )}
  ${each((r) => `let from${r} = q_base + head${r} * u.q_1 + query${r} * u.q_2;`)}
  ${each((r) =>
    count(size)
      .map((d) => `let q${r}_${d} = ${read(names[0], `from${r} + ${d}u`)} * u.scale;`)
      .join(' '),
  )}
  ${each((r) =>
    count(valueSize)
      .map((d) => `var y${r}_${d} = V(0.0);`)
      .join(' '),
  )}
  ${each(start)}
${keysOfBlock(spec, false)}
  for (var start = begin; start < end; start += ${columns}u) {
${count(columns)
  .map(
    (c) =>
      `    let key${c} = min(start + ${c}u, end - 1u); let k${c} = k_base + key${c} * u.k_2;
        let v${c} = v_base + key${c} * u.v_2;`,
  )
  .join('\n')}
    ${each((r) =>
      count(columns)
        .map((c) => `var d${r}_${c} = V(0.0);`)
        .join(' '),
    )}
${count(size)
  .map((d) =>
    count(columns)
      .map((c) => `    { let k = ${read(names[1], `k${c} + ${d}u`)}; ${each((r) => `d${r}_${c} += q${r}_${d} * k;`)} }`)
      .join('\n'),
  )
  .join('\n')}
    ${each((r) =>
      count(columns)
        .map((c) => `var s${r}_${c} = seen(batch, head${r}, query${r}, key${c}, capped(total(d${r}_${c})));`)
        .join('\n    '),
    )}
${count(columns)
  .slice(1)
  .map((c) => `    if (start + ${c}u >= end) { ${each((r) => `s${r}_${c} = ${MASKED};`)} }`)
  .join('\n')}
    ${each(
      (r) => `let larger${r} = max(largest${r}, max(${pairs(count(columns).map((c) => `s${r}_${c}`))}));
    let fade${r} = exp(largest${r} - larger${r}); largest${r} = larger${r};
    ${count(columns)
      .map((c) => `s${r}_${c} = weight_of(s${r}_${c}, larger${r});`)
      .join(' ')}
    sum${r} = sum${r} * fade${r} + ${count(columns)
      .map((c) => `s${r}_${c}`)
      .join(' + ')};`,
    )}
${count(valueSize)
  .map(
    (d) => `    { ${count(columns)
      .map((c) => `let v_${c} = ${read(names[2], `v${c} + ${d}u`)};`)
      .join(' ')}
      ${each(
        (r) =>
          `y${r}_${d} = y${r}_${d} * fade${r} + ${count(columns)
            .map((c) => `s${r}_${c} * v_${c}`)
            .join(' + ')};`,
      )} }`,
  )
  .join('\n')}
  }
  ${each(finish)}`;
    return preamble(spec) + linearMain(body);
  },
};

function pairs(values: string[]): string {
  return values.length === 1
    ? values[0]
    : values.length === 2
      ? values.join(', ')
      : `max(${pairs(values.slice(0, -1))}), ${values.at(-1)}`;
}

/** A workgroup has some rows; tiles of keys, then of values, pass through its memory. Several threads share a row. */
const HARDWARE: Shader<StreamingSpec> = {
  name: 'attention__hw_tiles',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, rows, columns, sharing, split } = spec;
    const shares = THREADS / rows;
    const pitch = Math.max(size, valueSize) + 1;
    const scores = count(columns / shares);
    const sums = count(Math.ceil(valueSize / shares));
    const tile = (
      name: string,
      width: number,
      base: string,
      step: string,
    ) => `    for (var at = lane; at < ${columns * width}u; at += ${THREADS}u) {
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
var<workgroup> weights: array<f32, ${Math.max(THREADS, rows * columns)}>;
${spec.masking.lengths ? 'var<workgroup> span: vec2<u32>;' : ''}
@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let index = group.y * groups.x + group.x;
  if (index >= u.count) { return; }
${PLACES}
  let first = unit % u.blocks * ${rows}u;
  let slot = lane / ${shares}u;
  let member = lane % ${shares}u;
  let own = min(first + slot, u.rows - 1u);
  let head = ${headOf('own', sharing)};
  let query = ${queryOf('own', sharing)};
  for (var at = lane; at < ${rows * size}u; at += ${THREADS}u) {
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
        : `let share = select(1.0 / whole, 0.0, whole == 0.0);
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

interface JoinSpec extends Pick<StreamingSpec, 'lanes' | 'valueSize' | 'storage' | 'sharing'>, Spec {
  readonly sink: MaskingSpec['sink'];
}

/** What several found of a row, weighted by how large their scores were. */
const JOIN: Shader<JoinSpec> = {
  name: 'attention_join__any',
  wgsl: ({ lanes, valueSize, storage, sharing, sink }) => {
    const score = sink === 'given' ? 'f32(sink[head])' : '0.0';
    return linearMain(`  let d = i % ${valueSize}u;
  let at = i / ${valueSize}u * u.splits;
  let row = i / ${valueSize}u % u.rows;
  let shared_head = i / ${valueSize}u / u.rows % u.kv_heads;
  let batch = i / ${valueSize}u / u.rows / u.kv_heads;
  let head = ${headOf('row', sharing)};
  var largest = ${sink === 'none' ? `f32(${LEAST})` : score};
  for (var part = 0u; part < u.splits; part++) { largest = max(largest, state[at + part].x); }
  var whole = ${sink === 'none' ? '0.0' : `exp(${score} - largest)`};
  var sum = ${laneType('f32', lanes)}(0.0);
  for (var part = 0u; part < u.splits; part++) {
    let found = state[at + part];
    let weight = exp(found.x - largest);
    whole += weight * found.y;
    sum += weight * sums[(at + part) * ${valueSize}u + d];
  }
  let share = select(1.0 / whole, 0.0, whole == 0.0);
  y[u.y_3 + batch * u.y_0 + head * u.y_1 + (${queryOf('row', sharing)}) * u.y_2 + d] =
    ${stored(storage, lanes, 'sum * share')};`);
  },
};
