// Tensors that are larger than the device binds at once (128 MiB on many), for any kernel: they are bound as several windows, and the
// shader's text reads and writes them through functions that pick the window. Outputs of more windows than there are bindings for are
// written in several passes, each of which keeps what falls into its windows.
import { KernelError, type Shader, type Spec, type Uniforms } from '../jsep/kernel';
import { type AccessedText, accessThrough } from '../wgsl/accessors';
import type { Region } from './segment';
import type { ShaderBinding } from './shader';

/** A binding of a dispatch and what it binds. */
export interface Bound extends ShaderBinding {
  readonly region: Region;
  /** Bytes of an element of `type`. */
  readonly elementBytes: number;
  /** For errors, e.g. float32[4,1000]. */
  readonly described: string;
}

export interface Limits {
  readonly maxStorageBindingSize: number;
  readonly maxStorageBuffersPerStage: number;
}

/** What takes the place of a dispatch. */
export interface Pass<S extends Spec> {
  readonly shader: Shader<S>;
  readonly bindings: readonly ShaderBinding[];
  readonly regions: readonly Region[];
  /** How many of them, at the end, are written. */
  readonly written: number;
  readonly uniforms: Uniforms;
}

/** A binding with its windows in a pass. */
interface Share {
  readonly bound: Bound;
  readonly windows: readonly Region[];
  /** Elements before the first of them, where they are not all. */
  readonly first?: number;
}

const ALIGNMENT = 256;

/** The dispatches that take the place of one whose bindings (of which the last `written` are outputs) are too large. */
export function inWindows<S extends Spec>(shader: Shader<S>, spec: S, bounds: readonly Bound[], written: number, uniforms: Uniforms, limits: Limits): Pass<S>[] {
  const step = Math.floor(limits.maxStorageBindingSize / ALIGNMENT) * ALIGNMENT;
  const all = bounds.map((bound): Share => ({ bound, windows: windowsOf(bound.region, limits.maxStorageBindingSize, step) }));
  const count = (shares: readonly Share[]) => shares.reduce((sum, { windows }) => sum + windows.length, 0);
  if (count(all) <= limits.maxStorageBuffersPerStage) return [passOf(shader, all, written, uniforms, step)];
  const inputs = all.slice(0, bounds.length - written);
  const outputs = all.slice(bounds.length - written);
  const cut = outputs.filter(({ windows }) => windows.length > 1).length;
  const most = Math.floor((limits.maxStorageBuffersPerStage - count(inputs) - (written - cut)) / cut);
  const text = accessThrough(shader.wgsl(spec), outputs.map(({ bound }) => bound.name));
  if (cut === 0 || most < 1 || outputs.some(({ bound }) => text.reads.has(bound.name))) throw tooLarge(shader.name, all, limits, count(all));
  const passes = Math.max(...outputs.map(({ windows }) => Math.ceil(windows.length / most)));
  return Array.from({ length: passes }, (_, pass) => {
    const parts = outputs.map((share): Share => {
      if (share.windows.length === 1) return share;
      // One that is complete before the others gets its last part again.
      const begin = Math.min(pass, Math.ceil(share.windows.length / most) - 1) * most;
      return { ...share, windows: share.windows.slice(begin, begin + most), first: (begin * step) / share.bound.elementBytes };
    });
    return passOf(shader, [...inputs, ...parts], written, uniforms, step);
  });
}

function tooLarge(name: string, shares: readonly Share[], limits: Limits, windows: number): KernelError {
  const large = shares.filter((share) => share.windows.length > 1).map(({ bound }) => bound.described);
  const [what, is] = [[...new Set(large)].join(' and '), large.length > 1 ? 'are' : 'is'];
  return new KernelError(
    `${name}: ${what} ${is} beyond the ${limits.maxStorageBindingSize} bytes that this device can bind; in parts there are ${windows} bindings, of which it allows ${limits.maxStorageBuffersPerStage}`,
    true,
  );
}

function windowsOf(region: Region, limit: number, step: number): Region[] {
  if (region.bytes <= limit) return [region];
  return Array.from({ length: Math.ceil(region.bytes / step) }, (_, k) => ({
    ...region, offset: (region.offset ?? 0) + k * step, bytes: Math.min(step, region.bytes - k * step),
  }));
}

function passOf<S extends Spec>(shader: Shader<S>, shares: readonly Share[], written: number, uniforms: Uniforms, step: number): Pass<S> {
  const cut = shares.filter(({ windows, first }) => windows.length > 1 || first !== undefined);
  const firsts = cut.filter(({ first }) => first !== undefined);
  return {
    // Which windows there are is in the bindings' names, so in the key.
    shader: { ...shader, name: `${shader.name}_windows`, wgsl: (spec) => windowedText(shader.wgsl(spec), cut, step) },
    bindings: shares.flatMap((share) => (cut.includes(share)
      ? share.windows.map((_, k) => ({ name: windowName(share, k, step), type: share.bound.type, writable: share.bound.writable }))
      : [{ name: share.bound.name, type: share.bound.type, writable: share.bound.writable }])),
    regions: shares.flatMap(({ windows }) => windows),
    written: shares.slice(-written).reduce((sum, { windows }) => sum + windows.length, 0),
    uniforms: { ...uniforms, ...Object.fromEntries(firsts.map((share) => [firstName(share), share.first!])) },
  };
}

function windowName({ bound, first }: Share, k: number, step: number): string {
  const elements = step / bound.elementBytes;
  return `${bound.name}_${first === undefined ? 'from' : 'part'}_${k * elements}_to_${(k + 1) * elements}`;
}

function firstName({ bound }: Share): string {
  return `${bound.name}_first`;
}

function windowedText(text: string, cut: readonly Share[], step: number): string {
  const accessed = accessThrough(text, cut.map(({ bound }) => bound.name));
  return `${accessed.text}\n${cut.map((share) => accessorsOf(share, accessed, step)).join('')}`;
}

/** The functions that the text calls for this binding. */
function accessorsOf(share: Share, { reads, writes, laneWrites }: AccessedText, step: number): string {
  const { bound: { name, type, elementBytes }, windows, first } = share;
  const elements = step / elementBytes;
  const place = first === undefined ? 'i' : `i - u.${firstName(share)}`;
  const last = windows.length - 1;
  // Of all windows, what is beyond the others is in the last one; of a pass's, it is another pass's.
  const choose = (statement: (element: string) => string) => windows.map((_, k) => {
    const condition = k === last && first === undefined ? '' : `if (at < ${(k + 1) * elements}u) `;
    return `${condition}{ ${statement(`${windowName(share, k, step)}[at${k > 0 ? ` - ${k * elements}u` : ''}]`)} }`;
  }).join(' else ');
  const found = `let at = ${place};`;
  return [
    reads.has(name) ? `fn read_${name}(i: u32) -> ${type} { ${found} var value: ${type}; ${choose((element) => `value = ${element};`)} return value; }\n` : '',
    writes.has(name) ? `fn write_${name}(i: u32, value: ${type}) { ${found} ${choose((element) => `${element} = value;`)} }\n` : '',
    laneWrites.has(name)
      ? `fn write_lane_${name}(i: u32, lane: u32, value: ${type.replace(/^vec\d<(.*)>$/, '$1')}) { ${found} ${choose((element) => `${element}[lane] = value;`)} }\n` : '',
  ].join('');
}
