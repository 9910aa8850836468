// jsepCopy between GPU tensors: rows that Loop and Scan take out of a tensor, or put into one.
import type { DType } from '../schema';
import type { GpuProvider } from '../gpu/provider';
import type { Command } from '../gpu/segment';
import { roundUp } from '../gpu/memory_plan';
import { stridedCopy } from '../wgsl/strided_copy';
import type { Kernel, Tensor } from './kernel';
import { makeTensor, resolveKernel } from './resolve';

/** In bytes: where the first block lies in a tensor, and how far behind each other the blocks are. */
export interface BlocksAt {
  readonly id: number;
  readonly offset: number;
  readonly step: number;
}

/** `count` blocks of `size` bytes. */
export interface Blocks {
  readonly size: number;
  readonly count: number;
  readonly source: BlocksAt;
  readonly target: BlocksAt;
}

/** What WebGPU's own copies begin at, and are long, in multiples of. */
const COPY_UNIT = 4;

/** In elements; the tensors are inputs 0 and 1. */
interface Strided {
  readonly count: number;
  readonly size: number;
  readonly from: { readonly offset: number; readonly step: number };
  readonly to: { readonly offset: number; readonly step: number };
}

const COPY: Kernel<Strided> = {
  op: 'jsepCopy',
  types: [],
  resolve(ctx, { count, size, from, to }) {
    const view = ({ offset, step }: { offset: number; step: number }) => ({ offset, strides: [step, 1] });
    stridedCopy(ctx, ctx.input(0), view(from), ctx.input(1), view(to), [count, size]);
  },
};

export function copyCommands({ size, count, source, target }: Blocks, dtype: DType, provider: GpuProvider): readonly Command[] {
  const together = count === 1 || (source.step === size && target.step === size);
  const bytes = size * count;
  if (together && [bytes, source.offset, target.offset].every((n) => n % COPY_UNIT === 0)) {
    return [{ kind: 'copy', source: { id: source.id, offset: source.offset, bytes }, target: { id: target.id, offset: target.offset, bytes } }];
  }
  const { elements } = provider.gpu;
  const unit = elements.size(dtype);
  // Of a tensor's shape only as much is known as is touched; memory is always whole vec4s.
  const tensor = ({ id, offset, step }: BlocksAt): { tensor: Tensor } => {
    const touched = offset + (count - 1) * step + size;
    return { tensor: makeTensor(elements, id, dtype, [roundUp(touched, 16) / unit], 'gpu') };
  };
  const inElements = ({ offset, step }: BlocksAt) => ({ offset: offset / unit, step: step / unit });
  const none = (): never => {
    throw new Error('a copy makes no tensors');
  };
  const strided = { count, size: size / unit, from: inElements(source), to: inElements(target) };
  return resolveKernel(COPY, strided, [tensor(source), tensor(target)], [], { output: none, view: none, temp: none }, provider).commands;
}
