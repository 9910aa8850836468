// The end of a product whose k was divided: adds up the parts, then scale, bias, epilogue.
import type { Shader } from '../../../../../contract/kernel';
import { productEpilogue } from './epilogue';
import { leftOperand } from './left_operand';
import type { ProductSpec } from './spec';
import { linearMain } from '../../../wgsl/linear';

export function sumOfParts(spec: ProductSpec): Shader<ProductSpec> {
  return { name: `${spec.left}_parts__hw_64`, wgsl: text };
}

/** One thread for 4 columns of a row. `parts` contains [z, part, m, 4-aligned columns]. */
function text(spec: ProductSpec): string {
  const left = leftOperand(spec);
  const epilogue = productEpilogue(spec);
  return `${epilogue.functions}${linearMain(`  let quads = (u.n + 3u) / 4u;
  let column = i % quads;
  let row = i / quads % u.m;
  let z = i / quads / u.m;
  ${left.base}
  var sum = vec4<f32>(0.0);
  for (var part = 0u; part < u.parts; part++) { sum += parts[((z * u.parts + part) * u.m + row) * quads + column]; }
  ${left.place('row')}
  ${epilogue.bias(0, 'column')}
  if (placed) { ${epilogue.store('sum', 0, 'row', 'column')} }`)}`;
}
