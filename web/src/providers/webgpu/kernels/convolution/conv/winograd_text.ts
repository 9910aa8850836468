// WGSL of Winograd's F(4x4, 3x3): the weights' transform, and all other steps in one shader: a thread takes its tiles
// of 4x4 outputs from the input to the output by way of its own memory, without waiting for other threads.
import type { Shader, Spec, StorageType } from '../../../../../contract/kernel';
import { ended, epilogueText } from '../../../wgsl/epilogue';
import type { Instruction } from '../../../wgsl/program';
import { stored } from '../../../wgsl/lanes';
import { linearMain } from '../../../wgsl/linear';
import { repeated } from '../../../wgsl/repeated';

/** Transforms of the input (transposed), of the weights, of the products (transposed): rows of coefficients. */
const INPUT = [
  [4, 0, -5, 0, 1, 0],
  [0, -4, -4, 1, 1, 0],
  [0, 4, -4, -1, 1, 0],
  [0, -2, -1, 2, 1, 0],
  [0, 2, -1, -2, 1, 0],
  [0, 4, 0, -5, 0, 1],
];
const WEIGHTS = [
  [1 / 4, 0, 0],
  [-1 / 6, -1 / 6, -1 / 6],
  [-1 / 6, 1 / 6, -1 / 6],
  [1 / 24, 1 / 12, 1 / 6],
  [1 / 24, -1 / 12, 1 / 6],
  [0, 0, 1],
];
const OUTPUT = [
  [1, 1, 1, 1, 1, 0],
  [0, 1, -1, 2, -2, 0],
  [0, 1, 1, 4, 4, 0],
  [0, 1, -1, 8, -8, 1],
];
export const TILE = 4;
export const POINTS = 36;

/** WGSL of a row of coefficients times values: the sum of those that are not 0. */
function combination(row: readonly number[], value: (i: number) => string): string {
  const terms = row.flatMap((coefficient, i) =>
    coefficient === 0 ? [] : [coefficient === 1 ? value(i) : `${coefficient} * ${value(i)}`],
  );
  return terms.join(' + ').replace(/\+ -/g, '- ');
}

/** Statements that declare w_I: row I of `matrix` times the values. */
function rowsTimes(matrix: readonly (readonly number[])[], value: (k: number) => string): string {
  return matrix.map((row, i) => `let w_${i} = ${combination(row, value)};`).join(' ');
}

/**
 * matrix * tile * transposed matrix. First the rows of the tile, one after the other, into `half`, then its columns: in
 * loops whose ends are uniforms, so that no compiler unrolls them (see product/software.ts). `size` is the tile's,
 * `made` the result's (WGSL). `load` declares v_0… of row r; `save` receives w_0… of column c.
 */
function transform(
  matrix: readonly (readonly number[])[],
  size: string,
  made: string,
  load: string,
  save: string,
): string {
  const [rows, columns] = [matrix.length, matrix[0].length];
  return `var half: array<vec4<f32>, ${rows * columns}>;
  for (var r = 0u; r < ${size}; r++) {
    ${load}
    ${rowsTimes(matrix, (k) => `v_${k}`)}
    ${matrix.map((_, i) => `half[r * ${rows}u + ${i}u] = w_${i};`).join(' ')}
  }
  for (var c = 0u; c < ${made}; c++) {
    ${matrix[0].map((_, k) => `let v_${k} = half[${k * rows}u + c];`).join(' ')}
    ${rowsTimes(matrix, (k) => `v_${k}`)}
    ${save}
  }`;
}

const SIX = [0, 1, 2, 3, 4, 5];
const FOUR = [0, 1, 2, 3];

/** A thread has a channel of the weights, for 4 outputs. */
export const transformedWeights: Shader<Spec> = {
  name: 'conv_winograd_weights__sw_4x4',
  wgsl: () =>
    linearMain(
      `  ${transform(
        WEIGHTS,
        'u.kernel',
        'u.tile',
        [0, 1, 2].map((j) => `let v_${j} = vec4<f32>(w[(r * 3u + ${j}u) * u.count + i]);`).join(' '),
        SIX.map((i) => `y[(${i * 6}u + c) * u.count + i] = w_${i};`).join(' '),
      )}`,
    ),
};

export interface TilesSpec extends Spec {
  /** Tiles, and groups of 4 output channels, of a thread. */
  readonly rows: number;
  readonly columns: number;
  readonly threads: number;
  /** True if threads of a subgroup (of at least 4) load one row of the weights each and share it. */
  readonly share: boolean;
  readonly epilogue: readonly Instruction[];
  readonly storage: StorageType;
  /** The input and the residual may be other columns of y, which must not be bound twice. */
  readonly inputIn: 'x' | 'y';
  readonly residualIn: 'residual' | 'y';
}

const TILE_PLACE = `let tile_x = tile % u.across * 4u;
    let tile_y = tile / u.across % u.down * 4u;
    let image = tile / (u.across * u.down);`;

export const winogradOfTiles: Shader<TilesSpec> = {
  name: 'conv_winograd__sw_4x4',
  wgsl(spec) {
    const { rows, columns, threads, share, epilogue } = spec;
    return `${share ? 'enable subgroups;\n' : ''}${epilogueText(epilogue, 4)}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32${share ? ', @builtin(subgroup_invocation_id) member: u32' : ''}) {
  let points = ((group.y * groups.x + group.x) * ${threads}u + lane) * (${POINTS * rows}u * (u.channels + ${columns}u));
  let products = points + ${POINTS * rows}u * u.channels;
  for (var turn = 0u; turn < u.turns; turn++) {
  let first_tile = ((turn * groups.x + group.x) * ${threads}u + lane) * ${rows}u;
  ${inputToPoints(spec)}
  for (var block = 0u; block < u.column_blocks; block++) {
    let first_column = (group.y * u.column_blocks + block) * ${columns}u;
    ${multiplied(spec)}
    ${productsToOutput(spec)}
  }
  }
}
`;
  },
};

/**
 * The points of all tiles, [point, tile, channel]. Tiles after the last one repeat it: their results are not written.
 */
function inputToPoints({ rows, inputIn }: TilesSpec): string {
  return `for (var own = 0u; own < u.rows; own++) {
    let tile = min(first_tile + own, u.tiles - 1u);
    ${TILE_PLACE}
    ${SIX.map((j) => `let x_${j} = tile_x + ${j}u - u.pad_left;`).join(' ')}
    for (var channel = 0u; channel < u.channels; channel++) {
    ${transform(
      INPUT,
      'u.tile',
      'u.tile',
      `let y_in = tile_y + r - u.pad_top;
    let inside = y_in < u.in_h;
    let row = (image * u.in_h + y_in) * u.in_w;
    ${SIX.map(
      (j) =>
        `let v_${j} = select(vec4<f32>(0.0),
            vec4<f32>(${inputIn}[select(0u, (row + x_${j}) * u.x_pitch + u.x_first + channel,
              inside && x_${j} < u.in_w)]), inside && x_${j} < u.in_w);`,
    ).join('\n    ')}`,
      SIX.map((i) => `scratch[points + ((${i * 6}u + c) * ${rows}u + own) * u.channels + channel] = w_${i};`).join(' '),
    )}
    }
  }`;
}

/** The products of the tiles' points with the weights, [point, tile, column]. */
function multiplied({ rows, columns, share }: TilesSpec): string {
  const loaded = (j: number) =>
    share
      ? `let own_${j} = v[at_v + ${j}u];
        let v_${j} = mat4x4<f32>(${FOUR.map((s) => `subgroupBroadcast(own_${j}, ${s}u)`).join(', ')});`
      : `let v_${j} = mat4x4<f32>(${FOUR.map((s) => `v[at_v + ${s}u * u.outputs + ${j}u]`).join(', ')});`;
  const sums = rows * columns;
  return `for (var point = 0u; point < u.points; point++) {
      ${repeated(rows, (i) => `let at_${i} = points + (point * ${rows}u + ${i}u) * u.channels;`)}
      ${repeated(sums, (i) => `var sum_${i} = vec4<f32>(0.0);`)}
      for (var k = 0u; k < u.channels; k++) {
      let at_v = ((point * u.channels + k) * 4u${share ? ' + (member & 3u)' : ''}) * u.outputs + first_column;
      ${repeated(rows, (i) => `let p_${i} = scratch[at_${i} + k];`)}
      ${repeated(columns, loaded)}
      ${repeated(sums, (i) => `sum_${i} += v_${i % columns} * p_${Math.floor(i / columns)};`)}
      }
      ${repeated(sums, (i) => `scratch[products + point * ${sums}u + ${i}u] = sum_${i};`)}
    }`;
}

function productsToOutput({ rows, columns, epilogue, storage, residualIn }: TilesSpec): string {
  const write = (j: number) =>
    `if (tile_y + ${j}u < u.out_h) {
        y[(pixel + ${j}u * u.out_w) * u.y_pitch + u.y_first + column] = ${stored(
          storage,
          4,
          ended(epilogue, `w_${j} + own_bias`, `residual_${j}`),
        )}; }`;
  return `for (var sum = 0u; sum < u.sums; sum++) {
    let tile = first_tile + sum / ${columns}u;
    let column = first_column + sum % ${columns}u;
    if (tile >= u.tiles || column >= u.outputs) { continue; }
    ${TILE_PLACE}
    var own_bias = vec4<f32>(0.0);
    if (u.has_bias != 0u) { own_bias = vec4<f32>(bias[column]); }
    ${transform(
      OUTPUT,
      'u.tile',
      'u.made',
      SIX.map((j) => `let v_${j} = scratch[products + (r * 6u + ${j}u) * ${rows * columns}u + sum];`).join(' '),
      `if (tile_x + c >= u.out_w) { break; }
    let pixel = (image * u.out_h + tile_y) * u.out_w + tile_x + c;
    ${FOUR.map((j) => `var residual_${j} = vec4<f32>(0.0);`).join(' ')}
    if (u.has_residual != 0u) {
      ${FOUR.map(
        (j) =>
          `residual_${j} = vec4<f32>(${residualIn}[(pixel + ${j}u * u.out_w) * u.residual_pitch + u.residual_first
              + column]);`,
      ).join(' ')} }
    ${FOUR.map(write).join('\n    ')}`,
    )}
    }`;
}
