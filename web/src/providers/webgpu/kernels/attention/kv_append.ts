// Appends to a KV cache, in as few dispatches as bindings allow: queries and keys rotated by their positions, new keys
// and values written after the old ones of their batch. Elements are read one by one and written in fours.
import type { Binding, Context, Shader, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { type Lanes, load, stored } from '../../wgsl/lanes';
import { bindingCount } from '../../wgsl/large';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { Heads } from './spec';

/** Rows of queries, keys or values, and their destination. */
export interface AppendedRows {
  readonly from: Heads;
  readonly heads: number;
  /** True if they are rotated. */
  readonly rotated: boolean;
  /**
   * The destination: [batch, positions, heads, size], or a cache [batch, heads, capacity, size], whose other rows are
   * copied from `past` (or zeros) unless `kept`.
   */
  readonly to: Tensor;
  readonly cache: boolean;
  readonly kept?: boolean;
  readonly past?: Tensor;
}

export interface Rotation {
  readonly cosine: Tensor;
  readonly sine: Tensor;
  readonly interleaved: boolean;
  /**
   * [batch, positions]; by default rows follow the existing ones. With `fromFirst` all rows count from the first
   * position.
   */
  readonly positions?: Tensor;
  readonly fromFirst?: boolean;
}

export interface AppendSizes {
  readonly batch: number;
  /** New rows of each batch. */
  readonly count: number;
  readonly size: number;
  /** Rows in all, minus one, for each batch. */
  readonly lengths: Tensor;
}

interface PartSpec extends Spec {
  /** Its binding. */
  readonly from: string;
  readonly rotated: boolean;
  readonly form: 'rows' | 'kept' | 'whole';
  readonly past: boolean;
}

interface AppendSpec extends Spec {
  readonly parts: readonly PartSpec[];
  readonly lanes: Lanes;
  readonly storage: StorageType;
  readonly rotation: 'none' | 'halves' | 'interleaved';
  readonly positions: 'none' | 'first' | 'each';
}

const POSITIONS = {
  none: 'old_of(batch) + row',
  first: 'u32(positions[0]) + row',
  each: 'u32(positions[batch * u.rows + row])',
};

const APPEND: Shader<AppendSpec> = {
  name: 'attention_kv_append__any',
  wgsl({ parts, lanes, storage, rotation, positions }) {
    const functions = parts.map(({ from, rotated }, p) => {
      const other = rotation === 'interleaved' ? 'd ^ 1u' : 'select(d - u.half, d + u.half, d < u.half)';
      const [pair, second] = rotation === 'interleaved' ? ['d / 2u', 'd % 2u == 1u'] : ['d % u.half', 'd >= u.half'];
      const rotate = rotated
        ? `
  if (d < 2u * u.half) {
    let at = place_of(batch, row) * u.half + ${pair};
    let other = f32(${from}[base + (${other})]) * f32(sine[at]);
    return f32(${from}[base + d]) * f32(cosine[at]) + select(-other, other, ${second});
  }`
        : '';
      return `fn new${p}(batch: u32, row: u32, head: u32, d: u32) -> f32 {
  let base = u.from${p}_3 + batch * u.from${p}_0 + head * u.from${p}_1 + row * u.from${p}_2;${rotate}
  return f32(${from}[base + d]);
}
fn four${p}(batch: u32, row: u32, head: u32, d: u32) -> V {
  return V(${Array.from({ length: lanes }, (_, lane) => `new${p}(batch, row, head, d + ${lane}u)`).join(', ')});
}`;
    });
    const write = ({ form, past }: PartSpec, p: number) => {
      const heads = `u.heads${p}`;
      if (form === 'whole') {
        return `    let d = j % u.size; let place = j / u.size % u.capacity;
    let head = j / u.size / u.capacity % ${heads}; let batch = j / u.size / u.capacity / ${heads};
    let first = old_of(batch);
    var value = V(0.0);
    if (place >= first && place < first + u.rows) { value = four${p}(batch, place - first, head, d * ${lanes}u); }
    ${
      past
        ? `else if (place < min(first, u.past)) {
            value = ${load(storage, lanes, `past${p}[((batch * ${heads} + head) * u.past + place) * u.size + d]`)}; }`
        : ''
    }
    y${p}[j] = ${stored(storage, lanes, 'value')};`;
      }
      const decode = `    let d = j % u.size; let head = j / u.size % ${heads};
        let row = j / u.size / ${heads} % u.rows; let batch = j / u.size / ${heads} / u.rows;
    let value = four${p}(batch, row, head, d * ${lanes}u);`;
      return form === 'rows'
        ? `${decode}
    y${p}[j] = ${stored(storage, lanes, 'value')};`
        : `${decode}
    let place = old_of(batch) + row;
    if (place < u.capacity) { y${p}[((batch * ${heads} + head) * u.capacity + place) * u.size + d] =
      ${stored(storage, lanes, 'value')}; }`;
    };
    return `alias V = ${lanes === 1 ? 'f32' : `vec${lanes}<f32>`};
fn old_of(batch: u32) -> u32 { return u32(max(lengths[batch] + 1 - i32(u.rows), 0)); }
${
  rotation === 'none'
    ? ''
    : `fn place_of(batch: u32, row: u32) -> u32 { return min(${POSITIONS[positions]}, u.places - 1u); }`
}
${functions.join('\n')}
${linearMain(`  var j = i;
${parts
  .map(
    (part, p) => `  if (j < u.count${p}) {
${write(part, p)}
    return;
  }
  j -= u.count${p};`,
  )
  .join('\n')}`)}`;
  },
};

/** Dispatches it. */
export function appendToCache(
  ctx: Context,
  all: AppendSizes,
  parts: readonly AppendedRows[],
  rotation?: Rotation,
): void {
  const most = ctx.device.maxStorageBuffersPerStage;
  const given = parts.filter(({ to }) => to.size > 0);
  // Together if there are enough bindings, otherwise one by one.
  if (bindingsOf(ctx, given, rotation) <= most) dispatchAppend(ctx, all, given, rotation);
  else for (const part of given) dispatchAppend(ctx, all, [part], part.rotated ? rotation : undefined);
}

function bindingsOf(ctx: Context, parts: readonly AppendedRows[], rotation?: Rotation): number {
  const read = new Map(parts.map(({ from: { tensor } }) => [tensor.id, tensor])).values();
  const rows = [
    ...read,
    ...parts.map(({ to }) => to),
    ...parts.flatMap(({ past, kept }) => (past && !kept ? [past] : [])),
  ];
  return bindingCount(rows, ctx.device) + 1 + (rotation ? 2 + Number(rotation.positions !== undefined) : 0);
}

function dispatchAppend(
  ctx: Context,
  { batch, count, size, lengths }: AppendSizes,
  parts: readonly AppendedRows[],
  rotation?: Rotation,
): void {
  if (parts.length === 0) return;
  const lanes: Lanes = size % 4 === 0 ? 4 : 1;
  const inputs: { [name: string]: Binding } = { lengths };
  const names = new Map<number, string>();
  for (const {
    from: { tensor },
  } of parts) {
    if (names.has(tensor.id)) continue;
    names.set(tensor.id, `x${names.size}`);
    inputs[names.get(tensor.id)!] = tensor;
  }
  const uniforms: { [name: string]: number | readonly number[] } = { rows: count, size: size / lanes };
  let threads = 0;
  parts.forEach(({ from, heads, to, cache, kept, past }, p) => {
    const whole = cache && !kept;
    const vectors = (whole ? to.size : batch * count * heads * size) / lanes;
    if (past && whole) inputs[`past${p}`] = { tensor: past, vec: lanes };
    Object.assign(uniforms, {
      [`count${p}`]: vectors,
      [`heads${p}`]: heads,
      [`from${p}`]: [...from.strides, from.offset ?? 0],
    });
    if (cache) uniforms.capacity = to.dims[2];
    if (whole) uniforms.past = past?.dims[2] ?? 0;
    threads += vectors;
  });
  if (rotation) {
    const { cosine, sine, positions } = rotation;
    Object.assign(inputs, { cosine, sine }, positions && { positions });
    Object.assign(uniforms, { half: cosine.dims[1], places: cosine.dims[0] });
  }
  ctx.dispatch({
    shader: APPEND,
    spec: {
      parts: parts.map(
        ({ from, rotated, cache, kept, past }): PartSpec => ({
          from: names.get(from.tensor.id)!,
          rotated,
          form: !cache ? 'rows' : kept ? 'kept' : 'whole',
          past: past !== undefined && !kept,
        }),
      ),
      lanes,
      storage: parts[0].to.storage,
      rotation: !rotation ? 'none' : rotation.interleaved ? 'interleaved' : 'halves',
      positions: !rotation?.positions ? 'none' : rotation.fromFirst ? 'first' : 'each',
    },
    inputs,
    outputs: Object.fromEntries(parts.map(({ to }, p) => [`y${p}`, { tensor: to, vec: lanes }])),
    uniforms: { ...uniforms, count: threads },
    workgroups: linearWorkgroups(threads, ctx.device),
  });
}
