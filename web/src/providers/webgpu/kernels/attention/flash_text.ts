// The common text of flash attention's shaders: the starts of heads, and the keys of a block.
import type { Spec, StorageType } from '../../../../contract/kernel';
import { type Lanes, laneType } from '../../wgsl/lanes';
import { type MaskingSpec, maskingText } from './masking';

export interface FlashSpec extends Spec {
  readonly lanes: Lanes;
  /** Vectors of `lanes` elements in a query, and in a value. */
  readonly size: number;
  readonly valueSize: number;
  /** Storage of q, k, v and y. */
  readonly storage: StorageType;
  /** The bindings of q, k and v. */
  readonly names: readonly [string, string, string];
  readonly masking: MaskingSpec;
  /** For a workgroup with a block: a thread has this many rows, and at least one key of each. */
  readonly threads: number;
  readonly rowsOfThread: number;
  /** Rows and keys of a block. */
  readonly rows: number;
  readonly columns: number;
  /** True if several heads share keys. */
  readonly sharing: boolean;
  /** True if several threads or workgroups share the keys of a row. */
  readonly split: boolean;
}

export const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Aliases, and the starts of a block's heads. */
export function preamble({ lanes, masking }: FlashSpec): string {
  return `alias V = ${laneType('f32', lanes)};
fn total(v: V) -> f32 { return ${lanes === 1 ? 'v' : 'v.x + v.y + v.z + v.w'}; }
${maskingText(masking)}`;
}

export const BASES = `  let part = index % u.splits;
  let unit = index / u.splits;
  let shared_head = unit / u.blocks % u.kv_heads;
  let batch = unit / u.blocks / u.kv_heads;
  let q_base = u.q_3 + batch * u.q_0;
  let k_base = u.k_3 + batch * u.k_0 + shared_head * u.k_1;
  let v_base = u.v_3 + batch * u.v_0 + shared_head * u.v_1;
  let y_base = u.y_3 + batch * u.y_0;`;

/** A row's head and query: neighbors are heads of one query. */
export const headOf = (row: string, sharing: boolean) =>
  sharing ? `shared_head * u.sharing + ${row} % u.sharing` : 'shared_head';
export const queryOf = (row: string, sharing: boolean) => (sharing ? `${row} / u.sharing` : row);

/**
 * The keys from `begin` to `end` of this part of the block, in whole tiles.
 * @param agreed true if there are barriers: a compiler must recognize that all threads of a workgroup use the same
 *   numbers, and it does not if they come from a tensor.
 */
export function keysOfBlock({ rows, columns, sharing, split }: FlashSpec, agreed: boolean): string {
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

/** True if a row has a score of its own at first: if keys are shared, the combination adds it. */
export const sinks = ({ split, masking }: FlashSpec) => !split && masking.sink !== 'none';
