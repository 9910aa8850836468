// Few rows times weights of few bits: a team of threads divides k, each has the same part of a few columns, whose words
// it loads several at a time. Rows may be normalized at the same time (their squares are summed with the products), the
// columns of a gate be multiplied by those half the matrix further on, and a residual be added.
import type { Shader, Spec, StorageType } from '../../../../../contract/kernel';
import { ended, epilogueText, readsBias, readsResidual } from '../../../wgsl/epilogue';
import { stored } from '../../../wgsl/lanes';
import type { Instruction } from '../../../wgsl/program';
import { teamMain } from '../../../wgsl/team';
import { HALVES_ADD, halvesOf, type Packed, scaleOf, weightsOf, zeroOf } from './few_bits';

/** The distribution of the work. */
export interface Shares {
  /** Rows of a at a time. */
  readonly rows: 1 | 4;
  /** Columns of a thread; with a gate, twice as many. */
  readonly columns: 1 | 2 | 4;
  /** Threads that share k. */
  readonly team: number;
  /** The form of unpacked weights (`weightsOf`). */
  readonly halves: boolean;
}

export interface FewRowsSpec extends Spec, Packed, Shares {
  /** Words of a column in one load; they are in one block. */
  readonly words: 1 | 2 | 4;
  /** True if k consists of whole loads: a is then read 4 elements at a time. */
  readonly whole: boolean;
  /** Type of the scale of a normalization. */
  readonly norm?: StorageType;
  /** True if columns of the first half are multiplied by those of the second. */
  readonly gate: boolean;
  /** The steps applied to columns (with a gate, to those of the first half), before a residual is added. */
  readonly epilogue?: readonly Instruction[];
  readonly bias: boolean;
  readonly residual: boolean;
  readonly result: StorageType;
}

const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

export const FEW_ROWS: Shader<FewRowsSpec> = {
  name: 'matmul_nbits__few',
  wgsl(spec) {
    const { rows, columns, team, whole, norm, epilogue } = spec;
    const sums = sumsOf(spec);
    const type = rows === 4 ? 'vec4<f32>' : 'f32';
    const accumulators = [
      ...sums.names.map((name) => ({ name, type: sums.type, start: `${sums.type}(0.0)` })),
      ...(norm ? [{ name: 'squares', type, start: `${type}(0.0)` }] : []),
    ];
    const main = teamMain({
      team,
      neighbors: false,
      accumulators,
      prepare: `  let first_column = o % u.groups * ${columns}u;
  let row = o / u.groups * ${rows}u;
${count(rows)
  .map((i) => `  let row_${i} = min(row + ${i}u, u.m - 1u) * u.k${whole ? ' / 4u' : ''};`)
  .join('\n')}
${count(sums.columns)
  .map((c) => {
    const within = `min(first_column + ${c % columns}u, u.width - 1u)`;
    return `  let column_${c} = ${within}${c >= columns ? ' + u.width' : ''};`;
  })
  .join('\n')}
  let first = 0u;
  let end = u.loads;`,
      step: step(spec, sums),
      merge: accumulators.map(({ name }) => `      ${name} += other_${name};`).join('\n'),
      finish: finish(spec, sums),
    });
    return epilogueText(epilogue, 1) + main;
  },
};

interface Sums {
  readonly names: readonly string[];
  readonly type: string;
  /** Including those of the gate's other half. */
  readonly columns: number;
  /** WGSL of the sum of a column and a row. */
  at(column: number, row: number): string;
}

/** One vector has the columns of a row, or the rows of a column. */
function sumsOf({ rows, columns, gate }: FewRowsSpec): Sums {
  const all = gate ? 2 * columns : columns;
  if (rows === 4)
    return {
      names: count(all).map((c) => `sum_${c}`),
      type: 'vec4<f32>',
      columns: all,
      at: (column, row) => `sum_${column}[${row}]`,
    };
  return {
    names: count(all / columns).map((half) => `sum_${half}`),
    type: columns === 1 ? 'f32' : `vec${columns}<f32>`,
    columns: all,
    at: (column) => `sum_${Math.floor(column / columns)}${columns === 1 ? '' : `[${column % columns}]`}`,
  };
}

/** Statements of load `r`, word by word. */
function step(spec: FewRowsSpec, sums: Sums): string {
  const { bits, rows, words, norm, halves } = spec;
  const load = (words * 32) / bits;
  const columns = count(sums.columns);
  const loads = columns.map((c) => `    let words_${c} = b[column_${c} * u.steps + r];`);
  const zeros = columns.map((c) => {
    const zero = zeroOf(spec, `column_${c}`);
    return `    let zero_${c} = ${zero}${halves ? ` + ${HALVES_ADD}` : ''};`;
  });
  const parts = columns.flatMap((c) => count(rows).map((i) => `var part_${c}_${i} = 0.0;`));
  const inWords = count(words).map((w) => {
    const vectors = count(8 / bits);
    const values = vectors.flatMap((j) => {
      const at = (w * 32) / bits + 4 * j;
      const scale = norm ? [`let g_${j} = ${normAt(spec, at)};`] : [];
      return [
        ...scale,
        ...count(rows).flatMap((i) => {
          const read = valueAt(spec, i, at);
          if (!norm) return [`let a_${i}_${j} = ${read};`];
          const squares = `squares${rows === 4 ? `[${i}]` : ''}`;
          return [
            `let x_${i}_${j} = ${read}; ${squares} += dot(x_${i}_${j}, x_${i}_${j});
      let a_${i}_${j} = x_${i}_${j} * g_${j};`,
          ];
        }),
      ];
    });
    const products = columns.map((c) => {
      const word = `words_${c}${words === 1 ? '' : `[${w}]`}`;
      const added = weightsOf(bits, word, `zero_${c}`, halves).flatMap((weights, j) => [
        `let w_${j} = ${weights};`,
        ...count(rows).map((i) => `part_${c}_${i} += dot(a_${i}_${j}, w_${j});`),
      ]);
      return `      { ${halves ? halvesOf(bits, word) : ''} ${added.join(' ')} }`;
    });
    return `    {\n      ${values.join('\n      ')}\n${products.join('\n')}\n    }`;
  });
  const scaled = columns.flatMap((c) => [
    `    let scale_${c} = ${scaleOf(spec, `column_${c}`)};`,
    ...count(rows).map((i) => `    ${sums.at(c, i)} += part_${c}_${i} * scale_${c};`),
  ]);
  return `    let k = r * ${load}u;
    let block = k / u.block;
${[...loads, ...zeros].join('\n')}
    ${parts.join(' ')}
${[...inWords, ...scaled].join('\n')}`;
}

/** Four elements of row `i`, `at` after the load's first. */
function valueAt({ whole }: FewRowsSpec, i: number, at: number): string {
  if (whole) return `vec4<f32>(a[row_${i} + k / 4u + ${at / 4}u])`;
  return inside((t) => `f32(a[row_${i} + min(k + ${at + t}u, u.k - 1u)])`, at);
}

function normAt({ whole }: FewRowsSpec, at: number): string {
  if (whole) return `vec4<f32>(norm[k / 4u + ${at / 4}u])`;
  return inside((t) => `f32(norm[min(k + ${at + t}u, u.k - 1u)])`, at);
}

/** With zeros beyond k. */
function inside(element: (t: number) => string, at: number): string {
  return `vec4<f32>(${[0, 1, 2, 3].map((t) => `select(0.0, ${element(t)}, k + ${at + t}u < u.k)`).join(', ')})`;
}

function finish(spec: FewRowsSpec, sums: Sums): string {
  const { rows, columns, norm, gate, epilogue, bias, residual, result } = spec;
  const inverses = norm
    ? count(rows).map(
        (i) => `    let inverse_${i} = inverseSqrt(squares${rows === 4 ? `[${i}]` : ''} / f32(u.k) + u.epsilon);`,
      )
    : [];
  const own = (c: number) => `f32(bias[column_${c}])`;
  const sum = (c: number, i: number) =>
    `${sums.at(c, i)}${norm ? ` * inverse_${i}` : ''}${bias && !readsBias(epilogue) ? ` + ${own(c)}` : ''}`;
  const [within, behind] = residual && readsResidual(epilogue) ? ['f32(residual[at])'] : [undefined, residual];
  const stores = count(rows).flatMap((i) =>
    count(columns).map((c) => {
      const value = `${ended(epilogue, sum(c, i), within, own(c))}${gate ? ` * (${sum(c + columns, i)})` : ''}`;
      return `    if (row + ${i}u < u.m && first_column + ${c}u < u.width) {
      let at = (row + ${i}u) * u.width + first_column + ${c}u;
      y[at] = ${stored(result, 1, `${value}${behind ? ' + f32(residual[at])' : ''}`)};
    }`;
    }),
  );
  return [...inverses, ...stores].join('\n');
}
