// A decoder's inputs and outputs, recognized by names, types and shapes in exports by optimum, transformers and
// onnxruntime-genai's builder: tokens in, logits out, and caches of keys and values, whose outputs are the next step's
// inputs.
import type { PlanInfo, PlanInput } from '../session/plan';
import type { DecoderNames, Role } from './generate_options';
import { checkKeys } from './option_names';
import { DType, ErrorCode, RuntimeError, typeName } from './outside';

/** Keys or values of one layer: [batch, heads, slots, size]. */
export interface CacheForm {
  readonly input: string;
  readonly output: string;
  readonly dtype: DType;
  readonly heads: number;
  readonly size: number;
}

/**
 * How caches become longer. `grows`: the output is the input and the new slots. `shared`: the same, but if the input is
 * longer than its valid part, the output has the input's length (GroupQueryAttention). `fixed`: always of one length.
 */
export type Growth = 'grows' | 'shared' | 'fixed';

export interface DecoderForm {
  readonly roles: Partial<Record<Role, PlanInput>>;
  readonly caches: readonly CacheForm[];
  readonly growth: Growth;
  /** Slots of a cache that is `fixed`. */
  readonly capacity: number | undefined;
  /** True if shorter rows are padded at the end: GroupQueryAttention counts a row's keys from the first. */
  readonly filledBehind: boolean;
  readonly logits: string;
}

interface Rule {
  readonly names: readonly string[];
  readonly ranks: readonly number[];
  readonly dtypes: readonly DType[];
  readonly shape: string;
}

const INTEGERS = [DType.int64, DType.int32];
const RULES: { readonly [role in Role]: Rule } = {
  ids: { names: ['input_ids'], ranks: [2], dtypes: INTEGERS, shape: 'integers [batch, length]' },
  mask: {
    names: ['attention_mask'],
    ranks: [2],
    dtypes: [...INTEGERS, DType.bool_, DType.float32],
    shape: '[batch, length]',
  },
  positions: { names: ['position_ids'], ranks: [2], dtypes: INTEGERS, shape: 'integers [batch, length]' },
  cachePositions: { names: ['cache_position'], ranks: [1], dtypes: INTEGERS, shape: 'integers [length]' },
  lengths: { names: ['seqlens_k', 'past_seq_len'], ranks: [1, 2], dtypes: INTEGERS, shape: 'integers [batch]' },
  total: {
    names: ['total_sequence_length', 'total_seq_len'],
    ranks: [0, 1],
    dtypes: INTEGERS,
    shape: 'an integer',
  },
  logitsToKeep: {
    names: ['num_logits_to_keep', 'logits_to_keep'],
    ranks: [0, 1],
    dtypes: INTEGERS,
    shape: 'an integer',
  },
  useCache: { names: ['use_cache_branch'], ranks: [0, 1], dtypes: [DType.bool_], shape: 'a bool' },
};
const ROLES = Object.keys(RULES) as Role[];
const KINDS = ['Key', 'Value'] as const;
const NAMES = [...ROLES, 'logits', ...KINDS.flatMap((kind) => [`past${kind}`, `present${kind}`])];

/** @throws RuntimeError that names the input or output without a place in a decoder. */
export function decoderForm(plan: PlanInfo, names: DecoderNames = {}): DecoderForm {
  checkKeys(names, NAMES, 'names');
  const roles: Partial<Record<Role, PlanInput>> = {};
  const pasts = new Map<string, PlanInput>();
  for (const input of plan.inputs) {
    const layer = layerOf(input.name, names, 'past');
    const role = ROLES.find((one) => (names[one] ? [names[one]] : RULES[one].names).includes(input.name));
    if (layer) pasts.set(layer, input);
    else if (role) roles[role] = checked(input, RULES[role], role);
    else throw noDecoder(`input "${input.name}" (${shown(input)}) is none that a decoder has`);
  }
  if (!roles.ids) throw noDecoder(`it has no input "${names.ids ?? 'input_ids'}"`);
  const logits = names.logits ?? 'logits';
  if (!plan.outputs.includes(logits)) throw noDecoder(`it has no output "${logits}"`);
  if (pasts.size === 0)
    throw noDecoder(`it has no caches ("${template(names, 'past', 'Key')}"): export it with its past`);
  const presents = new Map(plan.outputs.flatMap((name) => pairs(layerOf(name, names, 'present'), name)));
  const caches = [...pasts].map(([layer, input]) => {
    const output = presents.get(layer);
    if (output === undefined) throw noDecoder(`no output belongs to input "${input.name}"`);
    return cacheForm(input, output);
  });
  return { roles, caches, logits, ...growthOf(plan, caches, pasts) };
}

function pairs(key: string | undefined, value: string): [string, string][] {
  return key === undefined ? [] : [[key, value]];
}

function template(names: DecoderNames, when: 'past' | 'present', kind: 'Key' | 'Value'): string {
  return names[`${when}${kind}`] ?? `${when === 'past' ? 'past_key_values' : 'present'}.%d.${kind.toLowerCase()}`;
}

/** The layer and kind of a name: "Key 3". */
function layerOf(name: string, names: DecoderNames, when: 'past' | 'present'): string | undefined {
  for (const kind of KINDS) {
    const [before, after = ''] = template(names, when, kind).split('%d');
    const middle = name.slice(before.length, name.length - after.length);
    if (name.startsWith(before) && name.endsWith(after) && /^\d+$/.test(middle)) return `${kind} ${Number(middle)}`;
  }
  return undefined;
}

function checked(input: PlanInput, { ranks, dtypes, shape }: Rule, role: Role): PlanInput {
  const rank = input.dims?.length;
  if (!dtypes.includes(input.dtype) || (rank !== undefined && !ranks.includes(rank)))
    throw noDecoder(`input "${input.name}" is ${shown(input)}, and as ${role} should be ${shape}`);
  return input;
}

function cacheForm(input: PlanInput, output: string): CacheForm {
  const { name, dtype, dims } = input;
  if (dims?.length !== 4 || dims[1] <= 0 || dims[3] <= 0)
    throw noDecoder(`input "${name}" is ${shown(input)}, and a cache is [batch, heads, length, size] of known heads`);
  return { input: name, output, dtype, heads: dims[1], size: dims[3] };
}

function growthOf(
  plan: PlanInfo,
  caches: readonly CacheForm[],
  pasts: ReadonlyMap<string, PlanInput>,
): Pick<DecoderForm, 'growth' | 'capacity' | 'filledBehind'> {
  const makers = plan.makers();
  const filledBehind = caches.every(({ output }) => makers.get(output) === 'GroupQueryAttention');
  const lengths = new Set([...pasts.values()].map(({ dims }) => dims![2]));
  const [length] = lengths;
  if (lengths.size === 1 && length > 0) return { growth: 'fixed', capacity: length, filledBehind };
  return { growth: filledBehind ? 'shared' : 'grows', capacity: undefined, filledBehind };
}

function shown({ dtype, dims }: PlanInput): string {
  return `${typeName(dtype)}${dims ? `[${dims.map((dim) => (dim < 0 ? '?' : dim))}]` : ''}`;
}

function noDecoder(why: string): RuntimeError {
  return new RuntimeError(
    ErrorCode.not_implemented,
    `generate runs decoders with caches of keys and values, and this model is none: ${why}. ` +
      'If only its names are others, give them as `names`',
  );
}
