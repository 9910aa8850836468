// Common code of quantized operators: zero points and scales, one for all or one for each row or column; and the
// conversion back to bytes.
import { DType } from '../../../../../schema';
import { type Binding, KernelError, type StorageType, type Tensor } from '../../../../../contract/kernel';
import { type Lanes, laneType } from '../../../wgsl/lanes';

/** A zero point or a scale, with its steps for a row and for a column (or an output channel). */
export interface Factor {
  readonly tensor?: Tensor;
  readonly row: number;
  readonly column: number;
}

/** A factor, which belongs to rows or columns if it has more than one element. */
export function factorOf(tensor: Tensor | undefined, along: 'row' | 'column', length: number): Factor {
  const many = tensor !== undefined && tensor.size > 1;
  if (many && tensor.size !== length)
    throw new KernelError(`a zero point or scale of shape [${tensor.dims}] for ${length} ${along}s`);
  return { tensor, row: many && along === 'row' ? 1 : 0, column: many && along === 'column' ? 1 : 0 };
}

export function factorInputs(factors: Readonly<Record<string, Factor>>): { [name: string]: Binding } {
  return Object.fromEntries(
    Object.entries(factors).flatMap(([name, { tensor }]) => (tensor ? [[name, tensor] as const] : [])),
  );
}

export function factorUniforms(factors: Readonly<Record<string, Factor>>): { [name: string]: readonly number[] } {
  return Object.fromEntries(
    Object.entries(factors).flatMap(([name, { tensor, row, column }]) =>
      tensor ? [[`${name}_step`, [row, column]] as const] : [],
    ),
  );
}

/** WGSL of factor `name` at (row, column) as an i32; 0 without a factor. */
export function zeroPoint(present: boolean, name: string, row: string, column: string): string {
  return present ? `i32(${name}[${row} * u.${name}_step_0 + ${column} * u.${name}_step_1])` : '0';
}

export function scaleAt(name: string, row: string, column: string): string {
  return `f32(${name}[${row} * u.${name}_step_0 + ${column} * u.${name}_step_1])`;
}

/** Smallest and largest value of int8 or uint8. */
export function byteRange(dtype: DType): readonly [number, number] {
  return dtype === DType.int8 ? [-128, 127] : [0, 255];
}

/**
 * WGSL of `sum` (i32, or a vector) as a byte, or several: scaled, rounded to even, shifted, clamped to u.least and
 * u.most.
 */
export function requantized(storage: StorageType, sum: string, scale: string, zero: string, lanes: Lanes = 1): string {
  const [f, i] = [laneType('f32', lanes), laneType('i32', lanes)];
  return `${laneType(storage, lanes)}(clamp(${i}(round(clamp(${f}(${sum}) * (${scale}), ${f}(-1e9), ${f}(1e9))))
      + ${zero}, ${i}(u.least), ${i}(u.most)))`;
}
