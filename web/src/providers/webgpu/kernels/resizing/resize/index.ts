// Resize over any axes: nearest, linear, cubic. One thread for each output, or for 4 if the last axis is unchanged.
import type { Attributes } from '../../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  type StorageType,
} from '../../../../../contract/kernel';
import { type Division, division, divisionText, quotient } from '../../../wgsl/division';
import { inLanes, type Lanes, laneType, load, stored } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { sizeOf } from '../../../../../contract/shape';
import { type ColumnAttributes, columnsOf, outputColumns, readColumns } from '../../shared/columns';
import { antialiased } from './antialias';
import {
  type Axis,
  type Mode,
  OUTSIDE,
  readResize,
  resizeAxes,
  type ResizeAttributes,
  STAYS,
} from '../../../../../contract/resizing';
import { tableOf, written } from './places';

interface ResizeSpec extends Division {
  readonly mode: Mode;
  readonly nearest: string;
  /** For each axis (unchanged neighbors are joined): true if it changes. */
  readonly changes: readonly boolean[];
  readonly lanes: Lanes;
  readonly storage: StorageType;
  readonly excludeOutside: boolean;
  /** The last axis is unchanged, and consists of some columns of wider tensors (see shared/columns.ts). */
  readonly columns?: boolean;
  /** Positions outside of the input give a constant. */
  readonly extrapolates: boolean;
  /** For each axis: true if a table has its elements; absent if there are no tables. */
  readonly tables?: readonly boolean[];
}

const TAPS: { readonly [mode in Mode]: number } = { nearest: 1, linear: 2, cubic: 4 };
const NEAREST: { readonly [mode: string]: string } = {
  round_prefer_floor: 'ceil(on_border(p) - 0.5)',
  round_prefer_ceil: 'floor(on_border(p) + 0.5)',
  floor: 'floor(p)',
  ceil: 'ceil(p)',
};

interface ColumnsOfResize extends ResizeAttributes {
  readonly columns: ColumnAttributes;
}

const attributes = (given: Attributes): ColumnsOfResize => ({ ...readResize(given), columns: readColumns(given) });

function resolve(ctx: Context, r: ColumnsOfResize): void {
  const x = ctx.input(0);
  const from = columnsOf(x, r.columns.x);
  const all = resizeAxes(ctx, r, r.columns.x.length > 0 ? [...x.dims.slice(0, -1), from.count] : x.dims);
  const dims = all.map(({ output }) => output);
  const columns = from.count < from.pitch || r.columns.y.length > 0;
  if (all.every(({ kept }) => kept) && !columns) {
    ctx.view(0, x, dims);
    return;
  }
  if (r.antialias && r.mode !== 'nearest' && all.some(({ factor, kept }) => !kept && factor < 1)) {
    antialiased(ctx, x, ctx.output(0, dims), all, r);
    return;
  }
  if (!(r.nearest in NEAREST)) throw new KernelError(`Resize with nearest_mode ${r.nearest}`);
  const { y, at } = outputColumns(ctx, dims, r.columns);
  const axes = columns ? [...foldKept(all.slice(0, -1)), ...all.slice(-1)] : foldKept(all);
  const last = axes[axes.length - 1];
  if (columns && !last.kept) throw new KernelError('Resize of columns along their axis');
  const lanes: Lanes =
    last.kept &&
    [last.input, ...(columns ? [from.first, from.pitch, at.first, at.pitch] : [])].every((number) => number % 4 === 0)
      ? 4
      : 1;
  const count = sizeOf(dims) / lanes;
  const counted = axes.map((axis, i) =>
    i === axes.length - 1 && lanes === 4 ? { ...axis, input: axis.input / 4, output: axis.output / 4 } : axis,
  );
  const tables = axes.map((axis) => (r.mode === 'nearest' && !axis.kept ? tableOf(axis, r) : undefined));
  const table = tables.some(Boolean)
    ? written(
        ctx,
        tables.map((one) => one ?? []),
      )
    : undefined;
  const spec: ResizeSpec = {
    mode: r.mode,
    nearest: r.mode === 'nearest' ? r.nearest : '',
    changes: axes.map(({ kept }) => !kept),
    lanes,
    storage: x.storage,
    ...(columns && { columns }),
    excludeOutside: r.mode === 'cubic' && r.excludeOutside,
    extrapolates: r.coordinates === 'tf_crop_and_resize',
    ...(table && { tables: tables.map(Boolean) }),
    ...division(ctx.device),
  };
  const changing = counted.map((axis) => (axis.kept ? { ...axis, ...STAYS } : axis));
  ctx.dispatch({
    shader: { name: `resize_${r.mode}__any`, wgsl },
    spec,
    inputs: { x: inLanes(x, lanes), ...(table && { table }) },
    outputs: { y: inLanes(y, lanes) },
    uniforms: {
      count,
      ...(columns && {
        pitch: from.pitch / lanes,
        first: from.first / lanes,
        y_pitch: at.pitch / lanes,
        y_first: at.first / lanes,
      }),
      input: counted.map(({ input }) => input),
      output: counted.map(({ output }) => output),
      step: changing.map(({ step }) => step),
      scale: changing.map(({ scale }) => scale),
      shift: changing.map(({ shift }) => shift),
      offset: changing.map(({ offset }) => offset),
      ...(table && {
        table_at: tables.map((_, i) => tables.slice(0, i).reduce((sum, one) => sum + (one?.length ?? 0), 0)),
      }),
      ...(r.mode === 'cubic' && { cubic_a: r.cubicA }),
      ...(spec.extrapolates && { extrapolation: r.extrapolation }),
    },
    f32: ['step', 'scale', 'shift', 'offset', 'cubic_a', 'extrapolation'],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

function foldKept(axes: readonly Axis[]): Axis[] {
  const folded: Axis[] = [];
  for (const axis of axes) {
    const before = folded[folded.length - 1];
    if (before?.kept && axis.kept)
      folded[folded.length - 1] = { ...before, input: before.input * axis.input, output: before.output * axis.output };
    else folded.push(axis);
  }
  return folded;
}

function wgsl(spec: ResizeSpec): string {
  const { mode, nearest, changes, lanes, storage, columns, excludeOutside, extrapolates } = spec;
  const type = laneType('f32', lanes);
  const taps = TAPS[mode];
  const lines: string[] = ['  var rest = i;'];
  const choices: number[][] = [[]];
  for (let axis = changes.length - 1; axis >= 0; axis--) {
    lines.push(`  let out_${axis} = rest % u.output_${axis}; rest = rest / u.output_${axis};`);
  }
  changes.forEach((change, axis) => {
    if (change) lines.push(...tapsOf(spec, axis));
    else lines.push(`  let at_${axis}_0 = out_${axis};`);
    const used = change ? Array.from({ length: taps }, (_, t) => t) : [0];
    choices.splice(0, choices.length, ...choices.flatMap((choice) => used.map((t) => [...choice, t])));
  });
  const place = (choice: readonly number[]) =>
    choice.reduce((text, t, axis) => {
      if (axis === 0) return `at_0_${t}`;
      const before =
        columns && axis === changes.length - 1 ? `(${text}) * u.pitch + u.first` : `(${text}) * u.input_${axis}`;
      return `${before} + at_${axis}_${t}`;
    }, '');
  const target = columns
    ? `i / u.output_${changes.length - 1} * u.y_pitch + u.y_first + out_${changes.length - 1}`
    : 'i';
  const element = (choice: readonly number[]) => {
    const at = place(choice);
    return storage === 'i32' || storage === 'u32' ? `${type}(x[${at}])` : load(storage, lanes, `x[${at}]`);
  };
  const integer = storage === 'i32' || storage === 'u32';
  if (mode === 'nearest' && !extrapolates) {
    lines.push(`  y[${target}] = x[${place(choices[0])}];`);
  } else {
    const sum = choices.map((choice) => {
      const weights = choice.flatMap((t, axis) => (changes[axis] && mode !== 'nearest' ? [`weight_${axis}_${t}`] : []));
      return [element(choice), ...weights].join(' * ');
    });
    lines.push(`  var value = ${sum.join('\n    + ')};`);
    if (extrapolates)
      lines.push(
        `  if (${changes.flatMap((change, axis) => (change ? [`outside_${axis}`] : [])).join(' || ')}) {
            value = ${type}(u.extrapolation); }`,
      );
    lines.push(`  y[${target}] = ${integer ? `${laneType(storage, lanes)}(value)` : stored(storage, lanes, 'value')};`);
  }
  return `alias F = f32;
${divisionText(spec)}
fn position(i: u32, step: f32, scale: f32, shift: f32, offset: f32) -> f32 {
  return ${quotient(spec, '(f32(i) + shift) * step', 'scale')} + offset;
}
${
  mode === 'nearest'
    ? `${ON_BORDER}
fn nearest(p: f32) -> f32 { return ${NEAREST[nearest]}; }`
    : ''
}
${mode === 'cubic' ? CUBIC(excludeOutside) : ''}
${linearMain(lines.join('\n'))}`;
}

/** Statements that declare at_AXIS_T and weight_AXIS_T for each tap T. */
function tapsOf({ mode, excludeOutside, extrapolates, tables }: ResizeSpec, axis: number): string[] {
  if (tables?.[axis]) {
    return [
      `  let found_${axis} = table[u.table_at_${axis} + out_${axis}];`,
      ...(extrapolates ? [`  let outside_${axis} = found_${axis} == ${OUTSIDE}u;`] : []),
      `  let at_${axis}_0 = min(found_${axis}, u.input_${axis} - 1u);`,
    ];
  }
  const lines = [
    `  let p_${axis} = position(out_${axis}, u.step_${axis}, u.scale_${axis}, u.shift_${axis}, u.offset_${axis});`,
    `  let most_${axis} = f32(u.input_${axis} - 1u);`,
  ];
  if (extrapolates) lines.push(`  let outside_${axis} = p_${axis} < 0.0 || p_${axis} > most_${axis};`);
  if (mode === 'nearest') {
    lines.push(`  let at_${axis}_0 = u32(clamp(nearest(p_${axis}), 0.0, most_${axis}));`);
  } else if (mode === 'linear') {
    lines.push(
      `  let inside_${axis} = clamp(p_${axis}, 0.0, most_${axis});`,
      `  let at_${axis}_0 = u32(inside_${axis});`,
      `  let at_${axis}_1 = min(at_${axis}_0 + 1u, u.input_${axis} - 1u);`,
      `  let weight_${axis}_1 = inside_${axis} - f32(at_${axis}_0);`,
      `  let weight_${axis}_0 = 1.0 - weight_${axis}_1;`,
    );
  } else {
    lines.push(
      `  let floor_${axis} = floor(p_${axis});`,
      `  let weights_${axis} = cubic(p_${axis} - floor_${axis}${
        excludeOutside ? `, floor_${axis}, most_${axis}` : ''
      });`,
    );
    for (let t = 0; t < 4; t++) {
      lines.push(
        `  let at_${axis}_${t} = u32(clamp(floor_${axis} + ${t - 1}.0, 0.0, most_${axis}));`,
        `  let weight_${axis}_${t} = weights_${axis}[${t}];`,
      );
    }
  }
  return lines;
}

/** p, or the adjacent border if p differs from it only by rounding: as close as onnxruntime treats as a tie. */
const ON_BORDER = `fn on_border(p: f32) -> f32 {
  let border = floor(p) + 0.5;
  return select(p, border, abs(p - border) <= 1e-6);
}`;

const CUBIC = (
  excludeOutside: boolean,
) => `fn cubic(d: f32${excludeOutside ? ', whole: f32, most: f32' : ''}) -> vec4<f32> {
  let a = u.cubic_a;
  let far = vec2<f32>(1.0 + d, 2.0 - d);
  let near = vec2<f32>(d, 1.0 - d);
  let outer = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a;
  let inner = ((a + 2.0) * near - (a + 3.0)) * near * near + 1.0;
  let weights = vec4<f32>(outer.x, inner.x, inner.y, outer.y);
${
  excludeOutside
    ? `  let places = vec4<f32>(-1.0, 0.0, 1.0, 2.0) + whole;
  let kept = select(vec4<f32>(0.0), weights, (places >= vec4<f32>(0.0)) & (places <= vec4<f32>(most)));
  return kept / dot(kept, vec4<f32>(1.0));`
    : '  return weights;'
}
}`;

const INTEGERS: readonly DTypeName[] = ['int32', 'int8', 'uint8'];
const resize: Kernel<ColumnsOfResize> = {
  op: 'Resize',
  features: ['columns'],
  types: [['float32', 'float16', ...INTEGERS], [], [], []],
  requires: [{ attribute: 'antialias', values: [0], of: INTEGERS, otherwise: 'integers with antialias' }],
  attributes,
  resolve,
};

export default [resize];
