// Functions for a user's WGSL: elements by number or by indices, shapes, and the library's functions. Only the
// functions that it uses are declared.
import type { DType } from '../../../schema';
import type { Spec, StorageType, Tensor } from '../../../contract/kernel';
import {
  computeType,
  laneAliases,
  load,
  MATH_NAMES,
  type MathName,
  mathFunctions,
  narrowType,
  stored,
  wrapped,
} from '../wgsl';
import { foreignCalls } from '../wgsl/tokens';

/** The facts on which a tensor's helpers depend. */
export interface HelpedTensor extends Spec {
  readonly name: string;
  readonly storage: StorageType;
  readonly rank: number;
  readonly written: boolean;
  /** Its dtype, if arithmetic must wrap around. */
  readonly narrow?: DType;
}

export function helped(name: string, { storage, dims, dtype }: Tensor, written: boolean): HelpedTensor {
  return { name, storage, rank: dims.length, written, narrow: narrowType(dtype) };
}

interface Helper {
  /** True if it reads the dimensions, which then are uniforms: u.NAME_dim_0, … */
  readonly dims: boolean;
  readonly written?: boolean;
  wgsl(tensor: HelpedTensor): string;
}

const parameters = (rank: number): string[] => Array.from({ length: rank }, (_, axis) => `i${axis}: u32`);
const dim = (name: string, axis: number): string => `u.${name}_dim_${axis}`;

/** ((i0 * d1 + i1) * d2 + i2) … */
function flatIndex({ name, rank }: HelpedTensor): string {
  let index = rank > 0 ? 'i0' : '0u';
  for (let axis = 1; axis < rank; axis++) index = `(${index} * ${dim(name, axis)} + i${axis})`;
  return index;
}

function elementOf(tensor: HelpedTensor, index: string): string {
  return load(tensor.storage, 1, `${tensor.name}[${index}]`);
}

function storedValue(tensor: HelpedTensor): string {
  // `wrapped` uses U; these are scalars.
  return stored(tensor.storage, 1, wrapped(tensor.narrow, 'value').replaceAll('U(', 'u32('));
}

/** By the pattern of their names, in which _ is replaced by the tensor's name. */
const HELPERS: { readonly [pattern: string]: Helper } = {
  load__: { dims: false, wgsl: (t) => `fn load_${t.name}(i: u32) -> T_${t.name} { return ${elementOf(t, 'i')}; }` },
  store__: {
    dims: false,
    written: true,
    wgsl: (t) => `fn store_${t.name}(i: u32, value: T_${t.name}) { ${t.name}[i] = ${storedValue(t)}; }`,
  },
  __index: {
    dims: true,
    wgsl: (t) => `fn ${t.name}_index(${parameters(t.rank).join(', ')}) -> u32 { return ${flatIndex(t)}; }`,
  },
  __at: {
    dims: true,
    wgsl: (t) =>
      `fn ${t.name}_at(${parameters(t.rank).join(', ')}) -> T_${t.name} { return ${elementOf(t, flatIndex(t))}; }`,
  },
  __put: {
    dims: true,
    written: true,
    wgsl: (t) =>
      `fn ${t.name}_put(${[...parameters(t.rank), `value: T_${t.name}`].join(', ')}) {
          ${t.name}[${flatIndex(t)}] = ${storedValue(t)}; }`,
  },
  __dim: {
    dims: true,
    wgsl: (t) => `fn ${t.name}_dim(axis: u32) -> u32 {
${Array.from({ length: t.rank }, (_, axis) => `  if (axis == ${axis}u) { return ${dim(t.name, axis)}; }`).join('\n')}
  return 1u;
}`,
  },
  __size: {
    dims: true,
    wgsl: (t) =>
      `fn ${t.name}_size() -> u32 {
          return ${t.rank > 0 ? Array.from({ length: t.rank }, (_, axis) => dim(t.name, axis)).join(' * ') : '1u'}; }`,
  },
  __position: {
    dims: true,
    wgsl: (t) => `fn ${t.name}_position(i: u32) -> array<u32, ${Math.max(1, t.rank)}> {
  var rest = i;
  var position: array<u32, ${Math.max(1, t.rank)}>;
${Array.from({ length: t.rank }, (_, k) => t.rank - 1 - k)
  .map((axis) =>
    axis > 0
      ? `  position[${axis}] = rest % ${dim(t.name, axis)};\n  rest /= ${dim(t.name, axis)};`
      : '  position[0] = rest;',
  )
  .join('\n')}
  return position;
}`,
  },
};

function wanted(text: string, tensor: HelpedTensor): Helper[] {
  return Object.entries(HELPERS)
    .filter(
      ([pattern, { written }]) =>
        (!written || tensor.written) &&
        new RegExp(
          `\\b${pattern.replace('__', pattern.startsWith('__') ? `${tensor.name}_` : `_${tensor.name}`)}\\b`,
        ).test(text),
    )
    .map(([, helper]) => helper);
}

/** True if the text needs the dimensions of this tensor as uniforms. */
export function needsDims(text: string, tensor: HelpedTensor): boolean {
  return wanted(text, tensor).some(({ dims }) => dims);
}

/** The functions of the library that the text calls, unless it defines them itself. */
export function libraryOf(text: string): MathName[] {
  const called = foreignCalls(text);
  return MATH_NAMES.filter((name) => called.has(name));
}

/** The declarations of all helpers that the text calls. */
export function helperText(text: string, tensors: readonly HelpedTensor[]): string {
  const library = libraryOf(text);
  return [
    ...tensors.map(({ name, storage }) => `alias T_${name} = ${computeType(storage)};`),
    ...(library.length > 0 ? [laneAliases(1), mathFunctions(...library)] : []),
    ...tensors.flatMap((tensor) => wanted(text, tensor).map((helper) => helper.wgsl(tensor))),
  ].join('\n');
}
