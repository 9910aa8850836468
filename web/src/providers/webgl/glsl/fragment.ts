// A compute shader of which each thread writes the element of its own index, as a fragment shader: a fragment runs the
// threads of the elements in its texel, and keeps what they write to one of the outputs.
//
// A texture is memory: RGBA32UI, 16 bytes a texel, whatever the elements are. WebGL 2 renders to this format on every
// device, and bits stay as they are.
import { laneType } from '../../webgpu/wgsl';
import { bitsAt, packed, unpacked, valueType } from '../../webgpu/packed';
import type { ShaderBinding, ShaderRequest } from '../../webgpu/shader';
import { prelude } from './builtins';
import { parseModule, parseType } from './syntax';
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

/** Outputs that one draw writes: of equally many bits a thread, and as many as every device has attachments. */
const AT_ONCE = 4;

/** The outputs of a request, the first of which is 0, by the draws that write them. */
export function drawsOf({ bindings }: Pick<ShaderRequest, 'bindings'>): number[][] {
  const draws: number[][] = [];
  const bits = bindings.filter(({ writable }) => writable).map((binding) => boundOf(binding).bits);
  bits.forEach((own, i) => {
    const found = draws.find((draw) => draw.length < AT_ONCE && bits[draw[0]] === own);
    if (found) found.push(i);
    else draws.push([i]);
  });
  return draws;
}

/** The words of a texel in which a thread wrote another element than its own, or none; as float32, they are a NaN. */
const ASTRAY = '0x7fc0deadu';

/**
 * GLSL of a fragment shader for some outputs of a request, a draw of it.
 *
 * @param checked true to write ASTRAY into texels with a thread that did not write the element of its own index.
 */
export function fragmentText(request: ShaderRequest, draw: readonly number[], checked = false): string {
  const { shader, spec, uniforms } = request;
  const bindings = request.bindings.map(boundOf);
  const inputs = bindings.filter(({ writable }) => !writable);
  const outputs = bindings.filter(({ writable }) => writable);
  const targets = draw.map((i) => outputs[i]);
  const packing = bindings.map((binding) => packingText(binding));
  const arrays = bindings.map((binding): Accessed => ({ name: binding.name, type: glslType(binding) }));
  const body = writeModule(parseModule(`${shader.wgsl(spec)}\n${packing.join('\n')}`), {
    arrays,
    uniforms: new Map(uniforms.map(({ name, type }) => [name, type])),
  });
  const fields = uniforms.map(({ name, type }) => `${typeText({ scalar: type, lanes: 1 })} m_${name};`);
  const own = [
    ...(fields.length > 0 ? [`layout(std140) uniform Uniforms { ${fields.join(' ')} } u;`] : []),
    ...inputs.map((binding, i) => readText(binding, i)),
    'uint wanted;',
    ...(checked ? ['bool astray;'] : []),
    ...targets.map(
      (each) => `${typeText(glslType(each))} made_${each.name};${checked ? ` bool own_${each.name};` : ''}`,
    ),
    ...outputs.map((each) => {
      const { name } = each;
      const own = checked
        ? `if (i == wanted) { made_${name} = value; own_${name} = true; } else astray = true;`
        : `if (i == wanted) made_${name} = value;`;
      const work = targets.includes(each) ? own : '';
      return `void write_${each.name}(uint i, ${typeText(glslType(each))} value) { ${work} }`;
    }),
    body,
    mainText(targets, checked),
  ].join('\n');
  const results = targets.map(({ name }, i) => `layout(location = ${i}) out uvec4 result_${name};`);
  return `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
${results.join('\n')}
${prelude(own)}
${own}`;
}

const glslType = ({ packed: packing, type, lanes }: Bound) =>
  typeOf(parseType(packing ? valueType({ name: '', ...packing, lanes }) : type), new Map());

/** WGSL of unpack_NAME or pack_NAME, where elements are packed. */
function packingText(binding: Bound): string {
  if (!binding.packed) return '';
  const one = { name: binding.name, ...binding.packed };
  const words = laneType('u32', binding.bits === 64 ? 2 : 1);
  if (!binding.writable) return `fn unpack_${one.name}(w: ${words}) -> ${valueType(one)} { return ${unpacked(one)}; }`;
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

function mainText(targets: readonly Bound[], checked: boolean): string {
  const { bits } = targets[0];
  const per = 128 / bits;
  const each = (text: (target: Bound) => string) => targets.map(text).join(' ');
  const zero = (target: Bound) => {
    const type = typeText(glslType(target));
    const own = checked ? ` own_${target.name} = false;` : '';
    return `made_${target.name} = ${type}(${target.lanes === 1 ? '0' : `${type}(0)`});${own}`;
  };
  const missing = ({ name }: Bound) => `astray = astray || (wanted < u.m_count && !own_${name});`;
  const run = `${each(zero)} thread(wanted); ${checked ? each(missing) : ''}`;
  const result = ({ name }: Bound, words: string) =>
    `result_${name} = ${checked ? `astray ? uvec4(${ASTRAY}) : ${words}` : words};`;
  const begun = checked ? 'astray = false; ' : '';
  const texel = `${begun}uint texel = (uint(gl_FragCoord.y) << ${ROW_BITS}u) + uint(gl_FragCoord.x);`;
  if (per === 1) return `void main() { ${texel} wanted = texel; ${run} ${each((one) => result(one, bitsText(one)))} }`;
  return `void main() {
  ${texel}
  ${each(({ name }) => `uvec4 words_${name} = uvec4(0u);`)}
  for (uint k = 0u; k < ${per}u; k++) {
    wanted = texel * ${per}u + k;
    ${run}
    ${each(storeText)}
  }
  ${each((one) => result(one, `words_${one.name}`))}
}`;
}

/** GLSL of the bits of what was made. */
function bitsText({ name, bits, packed: packing, type }: Bound): string {
  if (packing) return `m_pack_${name}(made_${name})`;
  const words = bits === 128 ? 'uvec4' : bits === 64 ? 'uvec2' : 'uint';
  return `${type.includes('f32') ? 'floatBitsToUint' : words}(made_${name})`;
}

/** GLSL of a statement that puts the bits of element k of a texel into its words. */
function storeText(target: Bound): string {
  const { name, bits } = target;
  const [words, value] = [`words_${name}`, bitsText(target)];
  if (bits === 64) return `if (k == 0u) ${words}.xy = ${value}; else ${words}.zw = ${value};`;
  if (bits === 32) return `${words}[k] = ${value};`;
  const perWord = 32 / bits;
  return `${words}[k >> ${Math.log2(perWord)}u] |= ${value} << ((k & ${perWord - 1}u) * ${bits}u);`;
}
