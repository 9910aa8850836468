// Bindings whose elements are stored more densely than in shaders: float16 without f16, bfloat16, and 8 and 16-bit
// integers. A kernel's text reads and writes elements as if they were 32 bits wide. For such bindings it uses functions
// that unpack and pack: float16 and bfloat16 are rounded to the nearest even; parts of a word are written by atomics,
// because other threads own its neighbors. A binding's packing is in the pipeline's key.
import { PACKED_BITS } from '../../contract/elements';
import { KernelError, type Packing } from '../../contract/kernel';
import { accessThrough } from './wgsl/accessors';
import { type Lanes, laneType } from './wgsl/lanes';

export interface PackedBinding {
  readonly name: string;
  readonly packing: Packing;
  /** Elements that the shader reads or writes at a time. */
  readonly lanes: Lanes;
}

export interface PackedText {
  readonly text: string;
  /** The functions that the text calls. */
  readonly functions: readonly string[];
  /** WGSL's type of the arrays' elements, by name. */
  readonly types: { readonly [name: string]: string };
}

/** The module, with the elements of `bindings` unpacked when they are read, and packed when they are written. */
export function withPacked(module: string, bindings: readonly PackedBinding[]): PackedText {
  if (bindings.length === 0) return { text: module, functions: [], types: {} };
  const { text, reads, writes, laneWrites } = accessThrough(
    module,
    bindings.map(({ name }) => name),
  );
  const functions = new Set<string>();
  const types: { [name: string]: string } = {};
  for (const binding of bindings) {
    const { name } = binding;
    if (laneWrites.has(name)) throw new KernelError(`a shader writes single lanes of ${name}, which is packed`, true);
    // Neighbors in a word that several threads write: each of them changes only its own bits.
    const shared = writes.has(name) && bitsAt(binding) < 32;
    types[name] = shared ? 'atomic<u32>' : bitsAt(binding) === 64 ? 'vec2<u32>' : 'u32';
    if (reads.has(name)) functions.add(readText(binding, shared));
    const { needs } = packed(binding);
    if (writes.has(name) && needs) functions.add(needs);
    if (writes.has(name)) functions.add(writeText(binding));
  }
  return { text, functions: [...functions], types };
}

/** Bits that are read or written at a time. */
export function bitsAt({ packing, lanes }: PackedBinding): number {
  return PACKED_BITS[packing] * lanes;
}

function isSigned(packing: Packing): boolean {
  return packing.startsWith('i');
}

function isFloat(packing: Packing): packing is 'f16' | 'bf16' {
  return packing === 'f16' || packing === 'bf16';
}

/** WGSL's type of the values that are read or written at a time. */
export function valueType({ packing, lanes }: PackedBinding): string {
  return laneType(isFloat(packing) ? 'f32' : isSigned(packing) ? 'i32' : 'u32', lanes);
}

/** The place of `i` if several elements share a word: the word's index, and the first bit there. */
function placeInWord(binding: PackedBinding): { word: string; shift: string } {
  const slots = 32 / bitsAt(binding);
  return { word: `i >> ${Math.log2(slots)}u`, shift: `((i & ${slots - 1}u) * ${bitsAt(binding)}u)` };
}

function readText(binding: PackedBinding, shared: boolean): string {
  const { name } = binding;
  const { word, shift } = placeInWord(binding);
  const element = shared ? `atomicLoad(&${name}[${word}])` : `${name}[${word}]`;
  return `fn read_${name}(i: u32) -> ${valueType(binding)} {
    let w = ${bitsAt(binding) >= 32 ? `${name}[i]` : `${element} >> ${shift}`}; return ${unpacked(binding)}; }`;
}

/** WGSL of the values whose bits are `w`, the first one lowest. */
export function unpacked({ packing, lanes }: PackedBinding): string {
  if (packing === 'f16')
    return {
      1: 'unpack2x16float(w).x',
      2: 'unpack2x16float(w)',
      4: 'vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y))',
    }[lanes];
  const bits = PACKED_BITS[packing];
  const words = laneType('u32', lanes);
  const each = (number: (place: number) => number) =>
    `${words}(${Array.from({ length: lanes }, (_, lane) => `${number((lane * bits) % 32)}u`).join(', ')})`;
  // The first half of a float32.
  const upper = (word: string) => `${word} & 0xffff0000u`;
  if (packing === 'bf16' && lanes === 1) return 'bitcast<f32>(w << 16u)';
  if (packing === 'bf16' && lanes === 2) return `bitcast<vec2<f32>>(vec2<u32>(w << 16u, ${upper('w')}))`;
  if (packing === 'bf16')
    return `bitcast<vec4<f32>>(vec4<u32>(w.x << 16u, ${upper('w.x')}, w.y << 16u, ${upper('w.y')}))`;
  const spread = lanes === 1 ? 'w' : lanes * bits === 64 ? 'w.xxyy' : `${words}(w)`;
  // Bits before each value are shifted out, and its own sign is shifted in.
  if (isSigned(packing))
    return `bitcast<${laneType('i32', lanes)}>(${spread} << ${each((place) => 32 - bits - place)})
        >> ${words}(${32 - bits}u)`;
  return `(${spread} >> ${each((place) => place)}) & ${words}(${2 ** bits - 1}u)`;
}

/**
 * WGSL of the bits of each lane of `value`, h, of these joined in the form for `unpacked`, and of a function used in
 * them.
 */
export function packed({ packing, lanes }: PackedBinding): {
  parts: string;
  joined: string;
  needs?: string;
} {
  const bits = PACKED_BITS[packing];
  const words = laneType('u32', lanes);
  const parts = isFloat(packing)
    ? `${packing === 'f16' ? 'halves' : 'bfloats'}_${lanes}(value)`
    : `${words}(value) & ${words}(${2 ** bits - 1}u)`;
  const joined =
    bits * lanes === 64
      ? `h.xz | (h.yw << vec2<u32>(${bits}u))`
      : Array.from({ length: lanes }, (_, lane) =>
          lane === 0 ? (lanes === 1 ? 'h' : 'h.x') : `(h.${'xyzw'[lane]} << ${lane * bits}u)`,
        ).join(' | ');
  const needs = packing === 'f16' ? halvesText(lanes) : packing === 'bf16' ? bfloatsText(lanes) : undefined;
  return { parts, joined, needs };
}

function writeText(binding: PackedBinding): string {
  const { name } = binding;
  const { parts, joined } = packed(binding);
  const { word, shift } = placeInWord(binding);
  const store =
    bitsAt(binding) >= 32
      ? `${name}[i] = ${joined};`
      : `let shift = ${shift}; atomicAnd(&${name}[${word}], ~(${2 ** bitsAt(binding) - 1}u << shift));
        atomicOr(&${name}[${word}], (${joined}) << shift);`;
  return `fn write_${name}(i: u32, value: ${valueType(binding)}) { let h = ${parts}; ${store} }`;
}

/**
 * The nearest float16 (of two as near, the even one) of each value: beyond 65504 infinity. By bits: pack2x16float's
 * rounding, and its result for small and too large numbers, are not defined.
 */
function halvesText(lanes: Lanes): string {
  const [f, u] = [laneType('f32', lanes), laneType('u32', lanes)];
  return `fn halves_${lanes}(x: ${f}) -> ${u} {
  let bits = bitcast<${u}>(x);
  let size = bits & ${u}(0x7fffffffu);
  let normal = (size - ${u}(0x38000000u) + ${u}(0xfffu) + ((size >> ${u}(13u)) & ${u}(1u))) >> ${u}(13u);
  // Steps of 2^-24: those of the last place of numbers from 0.5 on.
  let small = bitcast<${u}>(bitcast<${f}>(size) + ${f}(0.5)) - ${u}(0x3f000000u);
  var half = select(normal, small, size < ${u}(0x38800000u));
  half = select(half, ${u}(0x7c00u), size > ${u}(0x477fefffu));
  half = select(half, ${u}(0x7e00u), size > ${u}(0x7f800000u));
  return half | ((bits >> ${u}(16u)) & ${u}(0x8000u));
}`;
}

/** The nearest bfloat16 of each value, of two as near the even one; a NaN stays one. */
function bfloatsText(lanes: Lanes): string {
  const [f, u] = [laneType('f32', lanes), laneType('u32', lanes)];
  return `fn bfloats_${lanes}(x: ${f}) -> ${u} {
  let bits = bitcast<${u}>(x);
  let nearest = (bits + ${u}(0x7fffu) + ((bits >> ${u}(16u)) & ${u}(1u))) >> ${u}(16u);
  return select(nearest, ${u}(0x7fc0u), (bits & ${u}(0x7fffffffu)) > ${u}(0x7f800000u));
}`;
}
