// All weights of few bits as a matrix of floats, for products of many rows.
import type { Shader, Spec, StorageType } from '../../../../../contract/kernel';
import { type Lanes, laneType, stored } from '../../../wgsl/lanes';
import { linearMain } from '../../../wgsl/linear';
import { type Packed, scaleOf, zeroOf } from './few_bits';

interface UnpackSpec extends Spec, Packed {
  /** True if the matrix is [n, k]; otherwise [k, n]. */
  readonly transposed: boolean;
  readonly lanes: Lanes;
  readonly result: StorageType;
}

export const UNPACK: Shader<UnpackSpec> = {
  name: 'matmul_nbits__unpack',
  wgsl(spec) {
    const { bits, transposed, lanes, result } = spec;
    const each = Array.from({ length: lanes }, (_, t) =>
      transposed ? `unpacked(at / u.k, at % u.k + ${t}u)` : `unpacked(at % u.n + ${t}u, at / u.n)`,
    );
    return `
fn unpacked(n: u32, k: u32) -> f32 {
  let block = k / u.block;
  let weight = (b[n * u.bytes + k * ${bits}u / 8u] >> (k * ${bits}u % 8u)) & ${2 ** bits - 1}u;
  return (f32(weight) - ${zeroOf(spec, 'n')}) * ${scaleOf(spec, 'n')};
}
${linearMain(`  let at = i * ${lanes}u;
  y[i] = ${stored(result, lanes, `${laneType('f32', lanes)}(${each.join(', ')})`)};`)}`;
  },
};
