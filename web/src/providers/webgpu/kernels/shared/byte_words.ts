// Kernels that end in a FakeQuantize write its bytes, too, for the products that read them
// (passes/placed/byte_words.py): output 4.
import type { Context, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { bindsWhole } from '../../wgsl/large';
import type { Instruction } from '../../wgsl/program';
import { Place } from '../../../../schema/dialect';

/**
 * Words of the elements of y: uint32 [y.size / 4]. If nobody wants them, this device does not multiply bytes or the
 * kernel cannot write them (`writes`), there are none, and whoever reads them makes its own.
 */
export function wordsOf(ctx: Context, y: Tensor, writes = true): Tensor | undefined {
  if (!ctx.wants(Place.WORDS_OUTPUT)) return undefined;
  const able = writes && bytesPay(ctx) && bindsWhole(y, ctx.device);
  const words = ctx.output(Place.WORDS_OUTPUT, [able ? y.size / 4 : 0], DType.uint32);
  return words.size > 0 ? words : undefined;
}

/** Whether products of bytes are quicker than those of floats. */
export function bytesPay({ device }: Context): boolean {
  return device.bytesFrom < Infinity && !device.software;
}

/** WGSL of four values, which the program rounded at last, as bytes less 128. */
export function wordText(program: readonly Instruction[], values: string): string {
  const count = program.reduce((sum, { numbers }) => sum + numbers, 0);
  return `pack4xI8(vec4<i32>(round(${values} / u.number_${count - 2}) + (u.number_${count - 1} - 128.0)))`;
}
