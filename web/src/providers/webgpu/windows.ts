// Tensors that are larger than one binding of a device (128 MiB on many), for any kernel: they are bound as several
// windows, and the shader's text accesses them through functions that select the window. Outputs with more windows than
// bindings are written in several passes, each of which keeps the elements in its windows.
import { KernelError, type Shader, type Spec, type Uniforms } from '../../contract/kernel';
import { type AccessedText, accessThrough } from './wgsl/accessors';
import { windowBytes, windowCount } from './wgsl/large';
import type { Region } from '../../device/commands';
import type { ShaderBinding } from './shader';

/** A binding of a dispatch, and its contents. */
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

/** A dispatch that replaces the original one, in part. */
export interface Pass<S extends Spec> {
  readonly shader: Shader<S>;
  readonly bindings: readonly ShaderBinding[];
  readonly regions: readonly Region[];
  /** Number of written ones, at the end. */
  readonly written: number;
  readonly uniforms: Uniforms;
}

/** A binding with its windows in a pass. */
interface Share {
  readonly bound: Bound;
  /** The binding after which the windows are named: itself, or an earlier one with the same contents. */
  readonly owner: Bound;
  readonly windows: readonly Region[];
  /** Elements before the first window, if there are others. */
  readonly first?: number;
}

/** The dispatches that replace one whose bindings (the last `written` are outputs) are too large. */
export function inWindows<S extends Spec>(
  shader: Shader<S>,
  spec: S,
  bounds: readonly Bound[],
  written: number,
  uniforms: Uniforms,
  limits: Limits,
): Pass<S>[] {
  const step = windowBytes(limits.maxStorageBindingSize);
  const all = bounds.map((bound): Share => {
    const windows = windowsOf(bound.region, limits.maxStorageBindingSize, step);
    return { bound, owner: windows.length > 1 ? bounds.find((other) => sameRegion(bound, other))! : bound, windows };
  });
  const count = (shares: readonly Share[]) =>
    shares.filter(owned).reduce((sum, { windows }) => sum + windows.length, 0);
  if (count(all) <= limits.maxStorageBuffersPerStage) return [passOf(shader, all, written, uniforms, step)];
  const inputs = all.slice(0, bounds.length - written);
  const outputs = all.slice(bounds.length - written);
  const cut = outputs.filter(({ windows }) => windows.length > 1).length;
  const most = Math.floor((limits.maxStorageBuffersPerStage - count(inputs) - (written - cut)) / cut);
  const text = accessThrough(
    shader.wgsl(spec),
    outputs.map(({ bound }) => bound.name),
  );
  if (cut === 0 || most < 1 || outputs.some(({ bound }) => text.reads.has(bound.name)))
    throw tooLarge(shader.name, all, limits, count(all));
  const passes = Math.max(...outputs.map(({ windows }) => Math.ceil(windows.length / most)));
  return Array.from({ length: passes }, (_, pass) => {
    const parts = outputs.map((share): Share => {
      if (share.windows.length === 1) return share;
      // An output that is complete before the others gets its last part again.
      const begin = Math.min(pass, Math.ceil(share.windows.length / most) - 1) * most;
      return {
        ...share,
        windows: share.windows.slice(begin, begin + most),
        first: (begin * step) / share.bound.elementBytes,
      };
    });
    return passOf(shader, [...inputs, ...parts], written, uniforms, step);
  });
}

function owned({ bound, owner }: Share): boolean {
  return bound === owner;
}

function sameRegion(a: Bound, b: Bound): boolean {
  return (
    a.region.id === b.region.id &&
    (a.region.offset ?? 0) === (b.region.offset ?? 0) &&
    a.region.bytes === b.region.bytes &&
    a.type === b.type
  );
}

function tooLarge(name: string, shares: readonly Share[], limits: Limits, windows: number): KernelError {
  const large = shares.filter((share) => share.windows.length > 1).map(({ bound }) => bound.described);
  const [what, is] = [[...new Set(large)].join(' and '), large.length > 1 ? 'are' : 'is'];
  return new KernelError(
    `${name}: ${what} ${is} beyond the ${limits.maxStorageBindingSize} bytes that this device can bind; ` +
      `in parts there are ${windows} bindings, of which it allows ${limits.maxStorageBuffersPerStage}`,
    true,
  );
}

function windowsOf(region: Region, limit: number, step: number): Region[] {
  const count = windowCount(region.bytes, limit);
  if (count === 1) return [region];
  return Array.from({ length: count }, (_, k) => ({
    ...region,
    offset: (region.offset ?? 0) + k * step,
    bytes: Math.min(step, region.bytes - k * step),
  }));
}

function passOf<S extends Spec>(
  shader: Shader<S>,
  shares: readonly Share[],
  written: number,
  uniforms: Uniforms,
  step: number,
): Pass<S> {
  const cut = shares.filter(({ windows, first }) => windows.length > 1 || first !== undefined);
  const firsts = cut.filter(({ first }) => first !== undefined);
  // The windows are in the bindings' names, and so in the key; shared bindings are in the shader's name.
  const sharing = shares.filter((share) => !owned(share)).map((share) => `_${share.bound.name}_in_${share.owner.name}`);
  return {
    shader: {
      ...shader,
      name: `${shader.name}_windows${sharing.join('')}`,
      wgsl: (spec) => windowedText(shader.wgsl(spec), cut, step),
    },
    bindings: shares
      .filter(owned)
      .flatMap((share) =>
        cut.includes(share)
          ? share.windows.map((_, k) => ({ ...declared(share), name: windowName(share, k, step) }))
          : [declared(share)],
      ),
    regions: shares.filter(owned).flatMap(({ windows }) => windows),
    written: shares.slice(-written).reduce((sum, { windows }) => sum + windows.length, 0),
    uniforms: { ...uniforms, ...Object.fromEntries(firsts.map((share) => [firstName(share), share.first!])) },
  };
}

function declared({ bound: { name, type, packed, writable } }: Share): ShaderBinding {
  return { name, type, packed, writable };
}

function windowName({ owner, first }: Share, k: number, step: number): string {
  const elements = step / owner.elementBytes;
  return `${owner.name}_${first === undefined ? 'from' : 'part'}_${k * elements}_to_${(k + 1) * elements}`;
}

function firstName({ bound }: Share): string {
  return `${bound.name}_part_begins`;
}

function windowedText(text: string, cut: readonly Share[], step: number): string {
  const accessed = accessThrough(
    text,
    cut.map(({ bound }) => bound.name),
  );
  return `${accessed.text}\n${cut.map((share) => accessorsOf(share, accessed, step)).join('')}`;
}

/** The functions that the text calls for this binding. */
function accessorsOf(share: Share, { reads, writes, laneWrites }: AccessedText, step: number): string {
  const {
    bound: { name, type, elementBytes },
    windows,
    first,
  } = share;
  const elements = step / elementBytes;
  const last = windows.length - 1;
  const found = `let at = i${first === undefined ? '' : ` - u.${firstName(share)}`};`;
  const element = (k: number) => `${windowName(share, k, step)}[at${k > 0 ? ` - ${k * elements}u` : ''}]`;
  // Elements beyond the others are in the last window of all; beyond a pass's windows, they are another pass's.
  const write = (lane: string) =>
    windows
      .map((_, k) => {
        const condition = k === last && first === undefined ? '' : `if (at < ${(k + 1) * elements}u) `;
        return `${condition}{ ${element(k)}${lane} = value; }`;
      })
      .join(' else ');
  // Without branches: with them, SwiftShader needs minutes to compile a tile of loads. Values read past a window's end
  // are not used.
  const read = windows.reduce(
    (value, _, k) => (k === 0 ? element(0) : `select(${value}, ${element(k)}, at >= ${k * elements}u)`),
    '',
  );
  return [
    reads.has(name) ? `fn read_${name}(i: u32) -> ${type} { ${found} return ${read}; }\n` : '',
    writes.has(name) ? `fn write_${name}(i: u32, value: ${type}) { ${found} ${write('')} }\n` : '',
    laneWrites.has(name)
      ? `fn write_lane_${name}(i: u32, lane: u32, value: ${type.replace(/^vec\d<(.*)>$/, '$1')}) {
          ${found} ${write('[lane]')} }\n`
      : '',
  ].join('');
}
