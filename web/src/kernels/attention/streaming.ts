// Attention in one dispatch: scores live in registers or workgroup memory, block of keys by block of keys, with a softmax that
// corrects itself whenever it meets a larger score.
import type { Binding, Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { type Lanes, laneType, load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { Attention, Heads } from './core';
import { HIDDEN, HIDING_F32, HIDING_I32, hidingParts, type HidingSpec, hidingText, LEAST } from './hiding';

interface StreamingSpec extends Spec {
  readonly lanes: Lanes;
  /** Vectors of `lanes` elements in a query, and in a value. */
  readonly size: number;
  readonly valueSize: number;
  /** Storage of q, k, v and y. */
  readonly storage: StorageType;
  /** The bindings where q, k and v lie. */
  readonly names: readonly [string, string, string];
  readonly hiding: HidingSpec;
  /** Queries and keys of a block. */
  readonly rows: number;
  readonly columns: number;
}

const MOST_VECTORS = 64;
const THREADS = 128;
const TILE_ROWS = 16;
const SHARES = THREADS / TILE_ROWS;
const LARGEST_GRID = 65535;

/** Dispatches it, where the heads' form allows; false where it does not. */
export function streamingAttention(ctx: Context, t: Attention): boolean {
  const { batch, heads, kvHeads, queries, keys } = t;
  if (t.debug || keys === 0) return false;
  const parts = [t.q, t.k, t.v, t.y];
  const fours = [t.size, t.valueSize, ...parts.flatMap(({ strides, offset = 0 }) => [...strides, offset])].every((step) => step % 4 === 0);
  const lanes: Lanes = fours ? 4 : 1;
  const [size, valueSize] = [t.size / lanes, t.valueSize / lanes];
  if (Math.max(size, valueSize) > MOST_VECTORS || parts.some(({ tensor }) => tensor.storage !== t.y.tensor.storage)) return false;
  const software = ctx.device.software;
  const columns = software ? 4 : tileColumns(ctx, size, valueSize, lanes);
  const rows = software ? (size + valueSize > 16 ? 2 : 4) : TILE_ROWS;
  const groups = batch * heads * Math.ceil(queries / rows);
  if (columns === 0 || groups > LARGEST_GRID * LARGEST_GRID) return false;
  // Parts of one tensor are bound once.
  const tensors: Tensor[] = [];
  const nameOf = ({ tensor }: Heads): string => {
    const found = tensors.findIndex(({ id }) => id === tensor.id);
    return `x${found < 0 ? tensors.push(tensor) - 1 : found}`;
  };
  const names = [nameOf(t.q), nameOf(t.k), nameOf(t.v)] as const;
  const hiding = hidingParts(t.hiding);
  if (tensors.length + Object.keys(hiding.inputs).length + 1 > ctx.device.maxStorageBuffersPerStage) return false;
  const bound = (tensor: Tensor): Binding => ({ tensor, vec: lanes });
  const place = ({ strides, offset = 0 }: Heads) => [...strides, offset].map((step) => step / lanes);
  ctx.dispatch({
    shader: software ? SOFTWARE : HARDWARE,
    spec: { lanes, size, valueSize, storage: t.y.tensor.storage, names, hiding: hiding.spec, rows, columns },
    inputs: { ...Object.fromEntries(tensors.map((tensor, i) => [`x${i}`, bound(tensor)])), ...hiding.inputs },
    outputs: { y: bound(t.y.tensor) },
    uniforms: {
      count: groups, blocks: Math.ceil(queries / rows), heads, sharing: heads / kvHeads, queries, keys, q: place(t.q), k: place(t.k), v: place(t.v),
      y: place(t.y), scale: t.scale, ...hiding.uniforms,
    },
    i32: HIDING_I32, f32: ['scale', ...HIDING_F32],
    workgroups: software ? linearWorkgroups(groups, ctx.device) : linearWorkgroups(groups, ctx.device, 1),
  });
  return true;
}

/** Keys of a tile, as many as workgroup memory holds; 0: none. */
function tileColumns(ctx: Context, size: number, valueSize: number, lanes: Lanes): number {
  const bytes = (columns: number) => 4 * (lanes * (TILE_ROWS * size + columns * (Math.max(size, valueSize) + 1)) + TILE_ROWS * columns);
  return [32, 16, 8].find((columns) => bytes(columns) <= ctx.device.maxWorkgroupStorage) ?? 0;
}

const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Aliases, and where the heads of a block begin. */
function preamble({ lanes, hiding }: StreamingSpec): string {
  return `alias V = ${laneType('f32', lanes)};
fn total(v: V) -> f32 { return ${lanes === 1 ? 'v' : 'v.x + v.y + v.z + v.w'}; }
${hidingText(hiding)}`;
}

const PLACES = `  let head = index / u.blocks % u.heads;
  let batch = index / u.blocks / u.heads;
  let q_base = u.q_3 + batch * u.q_0 + head * u.q_1;
  let k_base = u.k_3 + batch * u.k_0 + head / u.sharing * u.k_1;
  let v_base = u.v_3 + batch * u.v_0 + head / u.sharing * u.v_1;
  let y_base = u.y_3 + batch * u.y_0 + head * u.y_1;`;

/** No barriers: a thread has a few queries, and all of their numbers in registers. */
const SOFTWARE: Shader<StreamingSpec> = {
  name: 'attention__sw_rows',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, rows, columns } = spec;
    const read = (name: string, index: string) => `${load(storage, lanes, `${name}[${index}]`)}`;
    const each = (line: (r: number) => string) => count(rows).map(line).join(' ');
    const body = `  let index = i;
${PLACES}
  let first = index % u.blocks * ${rows}u;
  ${each((r) => `let row${r} = min(first + ${r}u, u.queries - 1u);`)}
  ${each((r) => count(size).map((d) => `let q${r}_${d} = ${read(names[0], `q_base + row${r} * u.q_2 + ${d}u`)} * u.scale;`).join(' '))}
  ${each((r) => count(valueSize).map((d) => `var y${r}_${d} = V(0.0);`).join(' '))}
  ${each((r) => `var largest${r} = f32(${LEAST}); var sum${r} = 0.0;`)}
  for (var start = 0u; start < u.keys; start += ${columns}u) {
${count(columns).map((c) => `    let key${c} = min(start + ${c}u, u.keys - 1u); let k${c} = k_base + key${c} * u.k_2; let v${c} = v_base + key${c} * u.v_2;`).join('\n')}
    ${each((r) => count(columns).map((c) => `var d${r}_${c} = V(0.0);`).join(' '))}
${count(size).map((d) => count(columns).map((c) => `    { let k = ${read(names[1], `k${c} + ${d}u`)}; ${each((r) => `d${r}_${c} += q${r}_${d} * k;`)} }`).join('\n')).join('\n')}
    ${each((r) => count(columns).map((c) => `var s${r}_${c} = seen(batch, head, row${r}, key${c}, capped(total(d${r}_${c})));`).join('\n    '))}
${count(columns).slice(1).map((c) => `    if (start + ${c}u >= u.keys) { ${each((r) => `s${r}_${c} = ${HIDDEN};`)} }`).join('\n')}
    ${each((r) => `let larger${r} = max(largest${r}, max(${pairs(count(columns).map((c) => `s${r}_${c}`))}));
    let fade${r} = exp(largest${r} - larger${r}); largest${r} = larger${r};
    ${count(columns).map((c) => `s${r}_${c} = select(exp(s${r}_${c} - larger${r}), 0.0, s${r}_${c} == f32(${HIDDEN}));`).join(' ')}
    sum${r} = sum${r} * fade${r} + ${count(columns).map((c) => `s${r}_${c}`).join(' + ')};`)}
${count(valueSize).map((d) => `    { ${count(columns).map((c) => `let v_${c} = ${read(names[2], `v${c} + ${d}u`)};`).join(' ')}
      ${each((r) => `y${r}_${d} = y${r}_${d} * fade${r} + ${count(columns).map((c) => `s${r}_${c} * v_${c}`).join(' + ')};`)} }`).join('\n')}
  }
  ${each((r) => `let share${r} = select(1.0 / sum${r}, 0.0, sum${r} == 0.0); let to${r} = y_base + row${r} * u.y_2;
  ${count(valueSize).map((d) => `y[to${r} + ${d}u] = ${stored(storage, lanes, `y${r}_${d} * share${r}`)};`).join(' ')}`)}`;
    return preamble(spec) + linearMain(body);
  },
};

function pairs(values: string[]): string {
  return values.length === 1 ? values[0] : values.length === 2 ? values.join(', ') : `max(${pairs(values.slice(0, -1))}), ${values.at(-1)}`;
}

/** A workgroup has 16 queries; tiles of keys, then of values, pass through its memory. Eight threads share a query. */
const HARDWARE: Shader<StreamingSpec> = {
  name: 'attention__hw_tiles',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, rows, columns } = spec;
    const pitch = Math.max(size, valueSize) + 1;
    const scores = count(columns / SHARES);
    const sums = count(Math.ceil(valueSize / SHARES));
    const tile = (name: string, width: number, base: string, step: string) => `    for (var at = lane; at < ${columns * width}u; at += ${THREADS}u) {
      let row = at / ${width}u;
      tile[row * ${pitch}u + at % ${width}u] = ${load(storage, lanes, `${name}[${base} + min(start + row, u.keys - 1u) * ${step} + at % ${width}u]`)};
    }`;
    return `${preamble(spec)}
var<workgroup> queries: array<V, ${rows * size}>;
var<workgroup> tile: array<V, ${columns * pitch}>;
var<workgroup> weights: array<f32, ${rows * columns}>;
@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = group.y * groups.x + group.x;
  if (index >= u.count) { return; }
${PLACES}
  let first = index % u.blocks * ${rows}u;
  let slot = lane / ${SHARES}u;
  let member = lane % ${SHARES}u;
  let query = min(first + slot, u.queries - 1u);
  for (var at = lane; at < ${rows * size}u; at += ${THREADS}u) {
    queries[at] = ${load(storage, lanes, `${names[0]}[q_base + min(first + at / ${size}u, u.queries - 1u) * u.q_2 + at % ${size}u]`)} * u.scale;
  }
  ${sums.map((j) => `var y${j} = V(0.0);`).join(' ')}
  var largest = f32(${LEAST});
  var sum = 0.0;
  for (var start = 0u; start < u.keys; start += ${columns}u) {
${tile(names[1], size, 'k_base', 'u.k_2')}
    workgroupBarrier();
    ${scores.map((j) => `var d${j} = V(0.0);`).join(' ')}
    for (var d = 0u; d < ${size}u; d++) {
      let q = queries[slot * ${size}u + d];
      ${scores.map((j) => `d${j} += q * tile[(member + ${j * SHARES}u) * ${pitch}u + d];`).join(' ')}
    }
    ${scores.map((j) => `let key${j} = start + member + ${j * SHARES}u;
    let s${j} = select(seen(batch, head, query, min(key${j}, u.keys - 1u), capped(total(d${j}))), ${HIDDEN}, key${j} >= u.keys);
    weights[slot * ${columns}u + member + ${j * SHARES}u] = s${j};`).join('\n    ')}
    workgroupBarrier();
${tile(names[2], valueSize, 'v_base', 'u.v_2')}
    var larger = largest;
    for (var c = 0u; c < ${columns}u; c++) { larger = max(larger, weights[slot * ${columns}u + c]); }
    let fade = exp(largest - larger);
    largest = larger;
    workgroupBarrier();
    ${scores.map((j) => `let w${j} = select(exp(s${j} - larger), 0.0, s${j} == f32(${HIDDEN})); weights[slot * ${columns}u + member + ${j * SHARES}u] = w${j};`).join('\n    ')}
    sum = sum * fade + ${scores.map((j) => `w${j}`).join(' + ')};
    workgroupBarrier();
    ${sums.map((j) => `y${j} *= fade;`).join(' ')}
    for (var c = 0u; c < ${columns}u; c++) {
      let w = weights[slot * ${columns}u + c];
      ${sums.map((j) => `y${j} += w * tile[c * ${pitch}u + ${inside(j, valueSize)}];`).join(' ')}
    }
    workgroupBarrier();
  }
  weights[lane] = sum;
  workgroupBarrier();
  var whole = 0.0;
  for (var c = 0u; c < ${SHARES}u; c++) { whole += weights[slot * ${SHARES}u + c]; }
  let share = select(1.0 / whole, 0.0, whole == 0.0);
  if (first + slot < u.queries) {
    let to = y_base + query * u.y_2;
    ${sums.map((j) => `if (member + ${j * SHARES}u < ${valueSize}u) { y[to + member + ${j * SHARES}u] = ${stored(storage, lanes, `y${j} * share`)}; }`).join('\n    ')}
  }
}
`;
  },
};

/** The place of this thread's vector `j`; threads that have none read the last one. */
function inside(j: number, valueSize: number): string {
  const at = `member + ${j * SHARES}u`;
  return (j + 1) * SHARES > valueSize ? `min(${at}, ${valueSize - 1}u)` : at;
}
