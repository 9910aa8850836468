// Subgroup matrices where no adapter has them: each thread of a subgroup has whole sums of its own, and reads the
// operands' tiles anew. Slow, but the same products; halves are float32 here.
import type { Shader, Spec, SubgroupMatrix } from '../../src/contract/kernel';

export function withoutMatrices(shader: Shader<Spec>, matrix: SubgroupMatrix): Shader<Spec> {
  return { ...shader, wgsl: (spec) => emulated(shader.wgsl(spec), matrix) };
}

function emulated(text: string, { m, n, k, subgroup }: SubgroupMatrix): string {
  if (!text.includes('subgroup_matrix_left')) return text;
  const replaced = text
    .replace(/^(enable|diagnostic)\b[^;]*;$/gm, '')
    .replace(/^alias (Left|Right|Sum) =.*$/gm, '')
    .replace(/subgroupMatrixLoad<(Left|Right), (row|col)_major>\(&tile_[ab], /g, (_, side: string, major: string) =>
      major === 'col' ? `${side}(1u, ` : `${side}(0u, `,
    )
    .replace(/(sum_\w+) = subgroupMatrixMultiplyAccumulate\((\w+), (\w+), \1\);/g, 'multiply_accumulate($2, $3, &$1);')
    .replace(
      /subgroupMatrixStore<row_major>\(&sums, (.*), (sum_\w+), (\w+)\);/g,
      'if (thread % SUBGROUP == 0u) { store_sums($1, $2, $3); }',
    )
    .replace(/\bf16\b/g, 'f32');
  const unknown = /subgroup_?[mM]atrix\w*/.exec(replaced);
  if (unknown) throw new Error(`${unknown[0]} has no emulation`);
  const [entry, rest] = replaced.split('@compute');
  return `const SUBGROUP = ${subgroup}u;
struct Left { across: u32, at: u32, pitch: u32 }
struct Right { across: u32, at: u32, pitch: u32 }
struct Sum { values: array<f32, ${m * n}> }
${entry}
fn multiply_accumulate(a: Left, b: Right, sum: ptr<function, Sum>) {
  for (var i = 0u; i < ${m}u; i++) { for (var j = 0u; j < ${n}u; j++) { for (var q = 0u; q < ${k}u; q++) {
    let from_b = b.at + select(q * b.pitch + j, j * b.pitch + q, b.across == 1u);
    (*sum).values[i * ${n}u + j] += tile_a[a.at + i * a.pitch + q] * tile_b[from_b];
  } } }
}
fn store_sums(at: u32, sum: Sum, pitch: u32) {
  for (var i = 0u; i < ${m}u; i++) { for (var j = 0u; j < ${n}u; j++) {
    sums[at + i * pitch + j] = sum.values[i * ${n}u + j];
  } }
}
@compute${rest}`;
}
