// A compute shader of which each thread writes the element of its own index, as a fragment shader: a fragment runs the
// threads of the elements in its texel, and keeps what they write to one of the outputs.
//
// A texture is memory: RGBA32UI, 16 bytes a texel, whatever the elements are. WebGL 2 renders to this format on every
// device, and bits stay as they are.
import { laneType } from '../../webgpu/wgsl/lanes';
import { bitsAt, packed, unpacked, valueType } from '../../webgpu/packed';
import type { ShaderBinding, ShaderRequest } from '../../webgpu/shader';
import { prelude } from './builtins';
import { parseModule } from './syntax';
import { typeOf, typeText } from './types';
import { type Accessed, writeModule } from './writer';

/** Texels of a row of a texture, as a power of two. */
export const ROW_BITS = 11;
const PLACE = `ivec2(int(i & ${2 ** ROW_BITS - 1}u), int(i >> ${ROW_BITS}u))`;

interface Bound extends ShaderBinding {
  readonly lanes: 1 | 2 | 4;
  /** Bits of what is read or written at a time. */
  readonly bits: number;
}

function boundOf(binding: ShaderBinding): Bound {
  const lanes = Number(/^vec(\d)/.exec(binding.type)?.[1] ?? 1) as Bound['lanes'];
  const bits = binding.packed ? bitsAt({ name: '', ...binding.packed }) : 32 * lanes;
  return { ...binding, lanes, bits };
}

/** Elements of a texel, in units of the binding. */
export const perTexel = (binding: ShaderBinding): number => 128 / boundOf(binding).bits;

/** GLSL of a fragment shader for output `output` of a request, the first of which is 0. */
export function fragmentText(request: ShaderRequest, output: number): string {
  const { shader, spec, uniforms } = request;
  const bindings = request.bindings.map(boundOf);
  const inputs = bindings.filter(({ writable }) => !writable);
  const outputs = bindings.filter(({ writable }) => writable);
  const target = outputs[output];
  const packing = [...inputs, target].map((binding) => packingText(binding, binding === target));
  const arrays = bindings.map((binding): Accessed => ({ name: binding.name, type: glslType(binding) }));
  const body = writeModule(parseModule(`${shader.wgsl(spec)}\n${packing.join('\n')}`), {
    arrays,
    uniforms: new Map(uniforms.map(({ name, type }) => [name, type])),
  });
  const fields = uniforms.map(({ name, type }) => `${typeText({ scalar: type, lanes: 1 })} m_${name};`);
  const type = typeText(glslType(target));
  const zero = target.lanes === 1 ? '0' : `${type}(0)`;
  const own = [
    ...(fields.length > 0 ? [`layout(std140) uniform Uniforms { ${fields.join(' ')} } u;`] : []),
    ...inputs.map((binding, i) => readText(binding, i)),
    `uint wanted;\n${type} made;`,
    ...outputs.map((each) => {
      const work = each === target ? 'if (i == wanted) made = value;' : '';
      return `void write_${each.name}(uint i, ${typeText(glslType(each))} value) { ${work} }`;
    }),
    body,
    mainText(target, `${type}(${zero})`),
  ].join('\n');
  return `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
layout(location = 0) out uvec4 result;
${prelude(own)}
${own}`;
}

const glslType = ({ packed: packing, type, lanes }: Bound) =>
  typeOf(parseTypeName(packing ? valueType({ name: '', ...packing, lanes }) : type), new Map());

function parseTypeName(text: string) {
  const [, name, of] = /^(\w+)(?:<(\w+)>)?$/.exec(text)!;
  return { name, of: of ? [{ name: of, of: [] }] : [] };
}

/** WGSL of unpack_NAME or pack_NAME, where elements are packed. */
function packingText(binding: Bound, writable: boolean): string {
  if (!binding.packed) return '';
  const one = { name: binding.name, ...binding.packed };
  const words = laneType('u32', binding.bits === 64 ? 2 : 1);
  if (!writable) return `fn unpack_${one.name}(w: ${words}) -> ${valueType(one)} { return ${unpacked(one)}; }`;
  const { parts, joined, needs = '' } = packed(one);
  return `${needs}\nfn pack_${one.name}(value: ${valueType(one)}) -> ${words} { let h = ${parts}; return ${joined}; }`;
}

/** The name of the texture of input i. */
export const samplerName = (i: number): string => `t${i}`;

function readText(binding: Bound, i: number): string {
  const { name, bits, packed: packing, type } = binding;
  const [texture, kind] = [samplerName(i), typeText(glslType(binding))];
  const scalar = /u32|i32|f32/.exec(type)?.[0];
  const value = packing
    ? (words: string) => `m_unpack_${name}(${words})`
    : (words: string) =>
        scalar === 'f32' ? `uintBitsToFloat(${words})` : scalar === 'i32' ? `${kind}(${words})` : words;
  const prototype = packing ? `${kind} m_unpack_${name}(${bits === 64 ? 'uvec2' : 'uint'} m_w);\n` : '';
  const texel = `uvec4 texel_${name}(uint i) { return texelFetch(${texture}, ${PLACE}, 0); }`;
  const words =
    bits === 128
      ? `texel_${name}(i)`
      : bits === 64
        ? `(i & 1u) == 0u ? texel_${name}(i >> 1u).xy : texel_${name}(i >> 1u).zw`
        : wordText(bits, (index) => `texel_${name}(${index} >> 2u)[${index} & 3u]`);
  return `uniform usampler2D ${texture};
${prototype}${texel}
${kind} read_${name}(uint i) { return ${value(words)}; }`;
}

/** GLSL of element i of fewer bits than 32, lowest, in front of which there may be others. */
function wordText(bits: number, word: (index: string) => string): string {
  if (bits === 32) return word('i');
  const perWord = 32 / bits;
  return `${word(`(i >> ${Math.log2(perWord)}u)`)} >> ((i & ${perWord - 1}u) * ${bits}u)`;
}

function mainText({ name, bits, packed: packing, type }: Bound, zero: string): string {
  const words = packing ? `m_pack_${name}(made)` : type.includes('f32') ? 'floatBitsToUint(made)' : 'MADE(made)';
  const cast = words.replace('MADE', bits === 128 ? 'uvec4' : bits === 64 ? 'uvec2' : 'uint');
  const own = 'uint texel = (uint(gl_FragCoord.y) << ' + `${ROW_BITS}u) + uint(gl_FragCoord.x);`;
  if (bits === 128) return `void main() { ${own} wanted = texel; made = ${zero}; thread(wanted); result = ${cast}; }`;
  const per = 128 / bits;
  const store =
    bits === 64
      ? `uvec2 w = ${cast}; if (k == 0u) words.xy = w; else words.zw = w;`
      : bits === 32
        ? `words[k] = ${cast};`
        : `words[k >> ${Math.log2(32 / bits)}u] |= ${cast} << ((k & ${32 / bits - 1}u) * ${bits}u);`;
  return `void main() {
  ${own}
  uvec4 words = uvec4(0u);
  for (uint k = 0u; k < ${per}u; k++) {
    wanted = texel * ${per}u + k;
    made = ${zero};
    thread(wanted);
    ${store}
  }
  result = words;
}`;
}
