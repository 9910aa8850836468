// Further bindings of products' dispatches, besides their operands, and the numbers that their shaders read.
import type { Binding, Dispatch, Uniforms } from '../../../../../contract/kernel';
import { EPILOGUE_F32, epilogueUniforms } from '../../../wgsl/epilogue';
import { inLanes } from '../../../wgsl/lanes';
import type { Product } from './product';
import type { ProductSpec } from './spec';

/** The bindings and uniforms of the end of a product. */
export function ending(
  p: Product,
  spec: ProductSpec,
): Pick<Dispatch, 'inputs' | 'inPlace'> & { uniforms: Uniforms; f32: string[] } {
  const inputs: { [name: string]: Binding } = {};
  if (p.bias) inputs.bias = spec.bias === 'any' ? p.bias : inLanes(p.bias, spec.bVec);
  // A residual in y is read there: a written tensor may be bound only once.
  if (p.residual && spec.residualColumns !== 'y') inputs.residual = inLanes(p.residual, spec.bVec);
  const uniforms: { [name: string]: number | readonly number[] } = {
    m: p.m,
    n: p.n,
    ldy: p.ldy / spec.bVec,
    a_first: (p.aFirst ?? 0) / spec.aVec,
    y_first: (p.yFirst ?? 0) / spec.bVec,
    ...epilogueUniforms(p.epilogue),
  };
  if (spec.residualColumns)
    Object.assign(uniforms, {
      ld_residual: p.residualColumns!.pitch / spec.bVec,
      residual_first: p.residualColumns!.first / spec.bVec,
    });
  if (spec.scaled) Object.assign(uniforms, { alpha: p.alpha ?? 1, beta: p.beta ?? 1 });
  if (spec.bias === 'any') Object.assign(uniforms, { bias_row: p.biasStrides![0], bias_column: p.biasStrides![1] });
  for (const [key, value] of Object.entries(p.strides?.a ?? {})) uniforms[key] = divided(value, spec.aVec);
  for (const [key, value] of Object.entries(p.strides?.b ?? {}))
    uniforms[key] = divided(value, p.transposed && key === 'b_batch' ? 4 : spec.bVec);
  // Each thread adds the element that its own result replaces.
  const inPlace = spec.residualColumns ? undefined : { residual: 'y' };
  return { inputs, inPlace, uniforms: { ...uniforms, ...p.strides?.plain }, f32: ['alpha', 'beta', ...EPILOGUE_F32] };
}

function divided(value: number | readonly number[], by: number): number | readonly number[] {
  return typeof value === 'number' ? value / by : value.map((item) => item / by);
}
