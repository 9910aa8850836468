// Emulates subgroup matrices, which no adapter here has: each thread of a subgroup has its share of the sums, as on a
// GPU, and computes it from the operands' tiles. The products are the same; halves are float32 here.
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
    .replace(
      /(sum_\w+) = subgroupMatrixMultiplyAccumulate\((\w+), (\w+), \1\);/g,
      'multiply_accumulate(thread % SUBGROUP, $2, $3, &$1);',
    )
    .replace(
      /subgroupMatrixStore<row_major>\(&sums, (.*), (sum_\w+), (\w+)\);/g,
      'store_sums(thread % SUBGROUP, $1, &$2, $3);',
    )
    .replace(/\bf16\b/g, 'f32');
  const unknown = /subgroup_?[mM]atrix\w*/.exec(replaced);
  if (unknown) throw new Error(`${unknown[0]} has no emulation`);
  const [entry, rest] = replaced.split('@compute');
  return `const SUBGROUP = ${subgroup}u;
struct Left { across: u32, at: u32, pitch: u32 }
struct Right { across: u32, at: u32, pitch: u32 }
struct Sum { values: array<f32, ${Math.ceil((m * n) / subgroup)}> }
${entry}
fn multiply_accumulate(lane: u32, a: Left, b: Right, sum: ptr<function, Sum>) {
  let steps = select(vec2<u32>(b.pitch, 1u), vec2<u32>(1u, b.pitch), b.across == 1u);
  for (var place = lane; place < ${m * n}u; place += SUBGROUP) {
    let from_a = a.at + place / ${n}u * a.pitch;
    let from_b = b.at + place % ${n}u * steps.y;
    var value = (*sum).values[place / SUBGROUP];
    for (var q = 0u; q < ${k}u; q++) { value += tile_a[from_a + q] * tile_b[from_b + q * steps.x]; }
    (*sum).values[place / SUBGROUP] = value;
  }
}
fn store_sums(lane: u32, at: u32, sum: ptr<function, Sum>, pitch: u32) {
  for (var place = lane; place < ${m * n}u; place += SUBGROUP) {
    sums[at + place / ${n}u * pitch + place % ${n}u] = (*sum).values[place / SUBGROUP];
  }
}
@compute${rest}`;
}
