// GridSample over two or three axes: each output is sampled at its point of the grid. One thread for an output.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Kernel,
  KernelError,
  NHWC_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';

type Mode = 'nearest' | 'linear' | 'cubic';
type Padding = 'zeros' | 'border' | 'reflection';

interface GridSpec extends Spec {
  /** Channels last, in x and y. */
  readonly last: boolean;
  readonly axes: number;
  readonly mode: Mode;
  readonly padding: Padding;
  readonly alignCorners: boolean;
  readonly storage: StorageType;
  readonly grid: StorageType;
}

interface GridAttributes {
  readonly mode: string;
  readonly padding: string;
  readonly alignCorners: boolean;
}

const TAPS: { readonly [mode in Mode]: number } = { nearest: 1, linear: 2, cubic: 4 };
const PADDINGS: readonly string[] = ['zeros', 'border', 'reflection'] satisfies Padding[];
const CUBIC_A = '-0.75';

const SHADER: Shader<GridSpec> = {
  name: 'grid_sample__any',
  wgsl({ last, axes, mode, padding, alignCorners, storage, grid }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const taps = Array.from({ length: TAPS[mode] }, (_, tap) => tap);
    // As natively: half way between two elements, the mirrored one is the one of an even index.
    const start = {
      nearest: (plain: string, size: string) => `settle(round(${plain}), ${size})`,
      linear: (plain: string, size: string) => `settle(${plain}, ${size})`,
      cubic: (plain: string) => plain,
    };
    const position = (axis: number) => `let g_${axis} = ${load(grid, 1, `grid[point + ${axes - 1 - axis}u]`)};
  let size_${axis} = f32(u.input_${axis});
  let plain_${axis} = ${
    alignCorners ? `(g_${axis} + 1.0) * 0.5 * (size_${axis} - 1.0)` : `((g_${axis} + 1.0) * size_${axis} - 1.0) * 0.5`
  };
  let p_${axis} = ${start[mode](`plain_${axis}`, `size_${axis}`)};`;
    const tap = (axis: number, t: number) => {
      const place = {
        nearest: `round(p_${axis})`,
        linear: `floor(p_${axis}) + ${t}.0`,
        cubic: `floor(p_${axis}) + ${t - 1}.0`,
      }[mode];
      const weight = {
        nearest: '1.0',
        linear: t === 0 ? `1.0 - fract(p_${axis})` : `fract(p_${axis})`,
        cubic: `weights_${axis}[${t}]`,
      }[mode];
      return `let tap_${axis}_${t} = settle(${place}, size_${axis});
  let in_${axis}_${t} = tap_${axis}_${t} >= 0.0 && tap_${axis}_${t} <= size_${axis} - 1.0;
  let at_${axis}_${t} = u32(clamp(round(tap_${axis}_${t}), 0.0, size_${axis} - 1.0));
  let weight_${axis}_${t} = ${weight};`;
    };
    const choices = all.reduce<number[][]>(
      (before) => before.flatMap((choice) => taps.map((t) => [...choice, t])),
      [[]],
    );
    const term = (choice: readonly number[]) => {
      const at = choice.reduce(
        (text, t, axis) => `(${text}) * u.input_${axis} + at_${axis}_${t}`,
        last ? 'image' : 'plane',
      );
      const inside = choice.map((t, axis) => `in_${axis}_${t}`).join(' && ');
      return `select(0.0, ${load(
        storage,
        1,
        `x[${last ? `(${at}) * u.channels + channel` : at}]`,
      )}, ${inside}) * ${choice.map((t, axis) => `weight_${axis}_${t}`).join(' * ')}`;
    };
    const low = alignCorners ? '0.0' : '-0.5';
    const settle = {
      zeros: 'return p;',
      border: 'return clamp(p, 0.0, size - 1.0);',
      reflection: `let low = ${low};
  let range = size - 1.0 - 2.0 * low;
  if (range <= 0.0) { return 0.0; }
  let d = abs(p - low) % (2.0 * range);
  return low + min(d, 2.0 * range - d);`,
    }[padding];
    return `fn settle(p: f32, size: f32) -> f32 {
  ${settle}
}
${
  mode === 'cubic'
    ? `fn cubic(d: f32) -> vec4<f32> {
  let a = ${CUBIC_A};
  let far = vec2<f32>(1.0 + d, 2.0 - d);
  let near = vec2<f32>(d, 1.0 - d);
  let outer = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a;
  let inner = ((a + 2.0) * near - (a + 3.0)) * near * near + 1.0;
  return vec4<f32>(outer.x, inner.x, inner.y, outer.y);
}`
    : ''
}
${linearMain(`${
  last
    ? `  let channel = i % u.channels;
  let image = i / u.channels / u.pixels;
  let pixel = i / u.channels % u.pixels;`
    : '  let pixel = i % u.pixels;\n  let plane = i / u.pixels;\n  let image = plane / u.channels;'
}
  let point = (image * u.pixels + pixel) * ${axes}u;
  ${all.map(position).join('\n  ')}
  ${mode === 'cubic' ? all.map((axis) => `let weights_${axis} = cubic(fract(p_${axis}));`).join('\n  ') : ''}
  ${all.flatMap((axis) => taps.map((t) => tap(axis, t))).join('\n  ')}
  y[i] = ${stored(storage, 1, choices.map(term).join('\n    + '))};`)}`;
  },
};

export default [false, true].map(
  (last): Kernel<GridAttributes> => ({
    op: 'GridSample',
    domain: last ? NHWC_DOMAIN : undefined,
    types: [['float32', 'float16']],
    attributes: (a: Attributes) => ({
      mode: a.text('mode', 'linear'),
      padding: a.text('padding_mode', 'zeros'),
      alignCorners: a.integer('align_corners', 0) !== 0,
    }),
    resolve(ctx, { mode: given, padding, alignCorners }) {
      const [x, grid] = [ctx.input(0), ctx.input(1)];
      const axes = x.dims.length - 2;
      const mode = ({ bilinear: 'linear', bicubic: 'cubic' }[given] ?? given) as Mode;
      if ((axes !== 2 && axes !== 3) || grid.dims.length !== x.dims.length || grid.dims[axes + 1] !== axes)
        throw new KernelError(`GridSample of [${x.dims}] by [${grid.dims}]`);
      // ONNX defines cubic for images only.
      if (!(mode in TAPS) || (mode === 'cubic' && axes === 3))
        throw new KernelError(`GridSample over ${axes} axes in mode ${given}`);
      if (!PADDINGS.includes(padding)) throw new KernelError(`GridSample with the padding mode '${padding}'`);
      const output = grid.dims.slice(1, -1);
      const channels = last ? x.dims[axes + 1] : x.dims[1];
      const y = ctx.output(0, last ? [x.dims[0], ...output, channels] : [x.dims[0], channels, ...output]);
      ctx.dispatch({
        shader: SHADER,
        spec: { last, axes, mode, padding: padding as Padding, alignCorners, storage: x.storage, grid: grid.storage },
        inputs: { x, grid },
        outputs: { y },
        uniforms: {
          count: y.size,
          pixels: output.reduce((a, b) => a * b, 1),
          channels,
          input: last ? x.dims.slice(1, -1) : x.dims.slice(2),
        },
        workgroups: linearWorkgroups(y.size, ctx.device),
      });
    },
  }),
);
