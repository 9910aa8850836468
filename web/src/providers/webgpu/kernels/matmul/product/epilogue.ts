// WGSL of the end of a product: scale, bias, epilogue, store.
import { ended, epilogueText, readsBias, readsResidual } from '../../../wgsl/epilogue';
import { stored } from '../../../wgsl/lanes';
import { wordText } from '../../shared/byte_words';
import type { EpilogueSpec } from './spec';

export interface ProductEpilogue {
  /** Functions at module scope. */
  readonly functions: string;
  /** Statements that declare bias_J of the columns of group J (4 columns from 4 * `column`). */
  bias(j: number, column: string): string;
  /** Statements that store `sum` (vec4<f32>), if `row` is placed and `at` is known. */
  store(sum: string, j: number, row: string, column: string): string;
}

export function productEpilogue(spec: EpilogueSpec): ProductEpilogue {
  const { bVec, bias, residualColumns, compact, scaled, epilogue, storage, words } = spec;
  const residualAt = (column: string) =>
    residualColumns
      ? `${residualColumns === 'y' ? 'y' : 'residual'}[pixel * u.ld_residual + u.residual_first
          + column_base + ${column}]`
      : `residual[at + ${column}]`;
  const guarded = (has: string, name: string, value: string) =>
    compact ? `var ${name} = vec4<f32>(0.0); if (u.${has} != 0u) { ${name} = ${value}; }` : `let ${name} = ${value};`;
  /** The residual's text, and statements that must precede it. */
  const own = (value: string) => {
    if (!readsResidual(epilogue)) return { before: '', value: undefined };
    return compact
      ? { before: `${guarded('has_residual', 'own_residual', value)} `, value: 'own_residual' }
      : { before: '', value };
  };
  return {
    functions: epilogueText(epilogue, 4),
    bias(j, column) {
      if (bias !== 'row') return '';
      if (bVec === 4) return guarded('has_bias', `bias_${j}`, `vec4<f32>(bias[column_base + ${column}])`);
      const lanes = [0, 1, 2, 3].map((t) => `f32(bias[column_base + min((${column}) * 4u + ${t}u, u.n - 1u)])`);
      return guarded('has_bias', `bias_${j}`, `vec4<f32>(${lanes.join(', ')})`);
    },
    store(sum, j, row, column) {
      const terms = [scaled ? `u.alpha * ${sum}` : sum];
      if (bias === 'row' && !readsBias(epilogue)) terms.push(`${scaled ? 'u.beta * ' : ''}bias_${j}`);
      if (bias === 'any') {
        const lanes = [0, 1, 2, 3].map(
          (t) => `f32(bias[(${row}) * u.bias_row + min((${column}) * 4u + ${t}u, u.n - 1u) * u.bias_column])`,
        );
        terms.push(`${scaled ? 'u.beta * ' : ''}vec4<f32>(${lanes.join(', ')})`);
      }
      const end = (residual?: string) => ended(epilogue, terms.join(' + '), residual, `bias_${j}`);
      if (bVec === 4) {
        const { before, value } = own(`vec4<f32>(${residualAt(column)})`);
        return `if (${column} < u.n / 4u) {
            ${before}let value = ${end(value)}; y[at + ${column}] = ${stored(storage, 4, 'value')};
            ${words ? `words[at + ${column}] = ${wordText(epilogue!, 'value')};` : ''} }`;
      }
      const lanes = [0, 1, 2, 3].map((t) => `f32(${residualAt(`min((${column}) * 4u + ${t}u, u.n - 1u)`)})`);
      const { before, value: ownResidual } = own(`vec4<f32>(${lanes.join(', ')})`);
      // A loop at the end of the columns: four guarded stores make the shader four times as long.
      const write = (t: string) => `y[at + (${column}) * 4u + ${t}] = ${stored(storage, 1, `value[${t}]`)};`;
      return `{ ${before}let value = ${end(ownResidual)};
    if ((${column}) * 4u + 4u <= u.n) { ${[0, 1, 2, 3].map((t) => write(`${t}u`)).join(' ')} }
    else { for (var t = 0u; (${column}) * 4u + t < u.n; t++) { ${write('t')} } } }`;
    },
  };
}

/** The type in which four elements of an operand are read. */
export type Four = 'vec4<f32>' | 'vec4<f16>';

/** WGSL of 4 elements of b: row `row` (statements add u.ldb), group `column` of 4 columns. */
export function loadB(bVec: 1 | 4, row: string, column: string, four: Four = 'vec4<f32>'): string {
  if (bVec === 4) return `${four}(b[${row} + ${column}])`;
  return `vec4<f32>(${[0, 1, 2, 3].map((t) => `f32(b[${row} + (${column}) * 4u + ${t}u])`).join(', ')})`;
}
