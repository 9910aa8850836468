// Kernels that end in a FakeQuantize also write its bytes, as output 4, for the products that read them
// (passes/placed/byte_words.py).
import type { Context, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { bindsWhole } from '../../wgsl/large';
import type { Instruction } from '../../wgsl/program';
import { Place } from '../../../../schema/dialect';

/**
 * Words of the elements of y: uint32 [y.size / 4]. Undefined if no node reads them, if this device does not multiply
 * bytes, or if the kernel cannot write them (`writes`); the readers then make their own.
 */
export function wordsOf(ctx: Context, y: Tensor, writes = true): Tensor | undefined {
  if (!ctx.wants(Place.WORDS_OUTPUT)) return undefined;
  const able = writes && bytesPay(ctx) && bindsWhole(y, ctx.device);
  const words = ctx.output(Place.WORDS_OUTPUT, [able ? y.size / 4 : 0], DType.uint32);
  return words.size > 0 ? words : undefined;
}

/** True if products of bytes are faster than those of floats. */
export function bytesPay({ device }: Context): boolean {
  return device.bytesFrom < Infinity && !device.software;
}

/** WGSL of four values, which the program rounded last, as bytes minus 128. */
export function wordText(program: readonly Instruction[], values: string): string {
  const count = program.reduce((sum, { numbers }) => sum + numbers, 0);
  return `pack4xI8(vec4<i32>(round(${values} / u.number_${count - 2}) + (u.number_${count - 1} - 128.0)))`;
}
