// From a dispatch to the text of its shader. Pure: the text depends only on the key.
import type { Packing, Shader, Spec, StorageType, Uniforms } from '../../contract/kernel';
import { KernelError } from '../../errors';
import { hoistUniforms } from './wgsl/hoist';
import type { Lanes } from './wgsl/lanes';
import { directivesOf } from './wgsl/tokens';
import { withPacked } from './packed';

/** A storage binding in WGSL. */
export interface ShaderBinding {
  readonly name: string;
  /** The element type in WGSL, e.g. vec4<f32>. */
  readonly type: string;
  /** The form of packed elements. */
  readonly packed?: { readonly packing: Packing; readonly lanes: Lanes };
  readonly writable: boolean;
}

export type ScalarType = 'u32' | 'i32' | 'f32';
export interface UniformField {
  readonly name: string;
  readonly type: ScalarType;
}

/** The facts on which the text of a shader depends. */
export interface ShaderRequest {
  readonly shader: Shader<Spec>;
  readonly spec: Spec;
  readonly bindings: readonly ShaderBinding[];
  readonly uniforms: readonly UniformField[];
  /** True if uniforms are read once, at the start: faster on software adapters. */
  readonly hoisted?: boolean;
  /** An input in an output's place, without a binding of its own. */
  readonly inPlace?: { readonly input: string; readonly output: string };
}

export function elementType(storage: StorageType, vec: 1 | 2 | 4): string {
  return vec === 1 ? storage : `vec${vec}<${storage}>`;
}

/** JSON with sorted keys, so that equal specs have equal keys, however they were built. */
export function stableJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${stableJson(item)}`).join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

export function shaderKey(request: ShaderRequest): string {
  const bindings = request.bindings.map(
    ({ name, type, packed, writable }) => `${name}:${type}${packed ? `~${packed.packing}` : ''}${writable ? '!' : ''}`,
  );
  const uniforms = request.uniforms.map(({ name, type }) => `${name}:${type}`);
  const { inPlace } = request;
  const how = `${request.hoisted ? ' hoisted' : ''}${inPlace ? ` ${inPlace.input} in ${inPlace.output}` : ''}`;
  return `${request.shader.name} ${stableJson(request.spec)} (${bindings.join(',')}) {${uniforms.join(',')}}${how}`;
}

/** The whole module: declarations, then the kernel's text. */
export function shaderText(request: ShaderRequest): string {
  const { bindings, uniforms } = request;
  const own = inItsPlace(request.shader.wgsl(request.spec), request.inPlace);
  const plain = request.hoisted ? hoistUniforms(own) : own;
  const {
    text: body,
    functions,
    types,
  } = withPacked(
    plain,
    bindings.flatMap(({ name, packed }) => (packed ? [{ name, ...packed }] : [])),
  );
  const lines: string[] = [];
  // Directives must come first in a module; a kernel may start with its own.
  const directives = directivesOf(body);
  if (bindings.some(({ type }) => type.includes('f16')) && !/\benable\s+f16\b/.test(directives))
    lines.push('enable f16;');
  if (directives) lines.push(directives.trim());
  bindings.forEach(({ name, type, writable }, i) => {
    lines.push(
      `@group(0) @binding(${i}) ` +
        `var<storage, ${writable ? 'read_write' : 'read'}> ${name}: array<${types[name] ?? type}>;`,
    );
  });
  if (uniforms.length > 0) {
    lines.push(`struct Uniforms { ${uniforms.map(({ name, type }) => `${name}: ${type}`).join(', ')} }`);
    lines.push(`@group(0) @binding(${bindings.length}) var<uniform> u: Uniforms;`);
  }
  lines.push(...functions);
  return `${lines.join('\n')}\n${body.slice(directives.length)}\n`;
}

/** The text that reads an input from the output's binding. */
function inItsPlace(text: string, inPlace: ShaderRequest['inPlace']): string {
  return inPlace ? text.replace(new RegExp(`\\b${inPlace.input}(?=\\[)`, 'g'), inPlace.output) : text;
}

/** The uniform struct of a dispatch: its fields in order, and their bytes. */
export function packUniforms(
  uniforms: Uniforms,
  f32: readonly string[] = [],
  i32: readonly string[] = [],
): { fields: UniformField[]; bytes: Uint8Array } {
  const fields: UniformField[] = [];
  const values: [ScalarType, number][] = [];
  for (const [name, value] of Object.entries(uniforms)) {
    const type: ScalarType = f32.includes(name) ? 'f32' : i32.includes(name) ? 'i32' : 'u32';
    const items = typeof value === 'number' ? [value] : value;
    items.forEach((item, i) => {
      fields.push({ name: typeof value === 'number' ? name : `${name}_${i}`, type });
      values.push([type, item]);
    });
  }
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach(([type, value], i) => {
    if (type !== 'f32' && !Number.isInteger(value)) {
      throw new Error(
        `uniform ${fields[i].name} is ${value}, but ${type} needs an integer (name it in f32 if it is a number)`,
      );
    }
    if (type !== 'f32' && (value < -(2 ** 31) || value >= 2 ** 32))
      throw new KernelError(`${fields[i].name} is ${value}, which does not fit the 32-bit integers of shaders`);
    if (type === 'f32') view.setFloat32(i * 4, value, true);
    else if (type === 'i32') view.setInt32(i * 4, value, true);
    else view.setUint32(i * 4, value, true);
  });
  return { fields, bytes };
}
