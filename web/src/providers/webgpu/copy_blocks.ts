// jsepCopy between GPU tensors: rows that Loop and Scan read from a tensor, or write into one. It only knows elements'
// bytes. WebGPU's own copy does the work, or a kernel if blocks are strided or not whole words.
import { DType } from '../../schema';
import type { GpuProvider } from './provider';
import type { Blocks, BlocksAt } from '../../device/blocks';
import { makeTensor } from '../../device/call';
import type { Command } from '../../device/commands';
import { roundUp } from '../../device/memory_plan';
import { linearMain, linearWorkgroups } from './wgsl/linear';
import { stridedCopy } from './wgsl/strided_copy';
import type { Context, Kernel, Shader, Spec } from '../../contract/kernel';
import { resolveKernel } from './resolve';

/** Shaders read and write words, and WebGPU's own copies have whole words. */
const WORD = 4;

export function copyCommands(given: Blocks, provider: GpuProvider): readonly Command[] {
  const blocks = merged(given);
  const { size, count, source, target } = blocks;
  const words = [size, source.offset, target.offset, ...(count > 1 ? [source.step, target.step] : [])].every(
    (bytes) => bytes % WORD === 0,
  );
  if (words && count === 1) {
    return [
      {
        kind: 'copy',
        source: { id: source.id, offset: source.offset, bytes: size },
        target: { id: target.id, offset: target.offset, bytes: size },
      },
    ];
  }
  // Only the accessed part of a tensor is bound; memory is always whole vec4s.
  const tensor = (at: BlocksAt) => ({
    tensor: makeTensor(provider.gpu.elements, at.id, DType.uint32, [roundUp(end(at, blocks), 16) / WORD], 'gpu'),
  });
  const none = (): never => {
    throw new Error('a copy makes no tensors');
  };
  const host = { output: none, view: none, temp: none };
  return resolveKernel(words ? COPY_WORDS : COPY_BYTES, blocks, [tensor(source), tensor(target)], [], host, provider)
    .commands;
}

/** Joins blocks that follow each other in both tensors. */
function merged(blocks: Blocks): Blocks {
  const { size, count, source, target } = blocks;
  return source.step === size && target.step === size ? { ...blocks, size: size * count, count: 1 } : blocks;
}

/** The end of the last block. */
function end({ offset, step }: BlocksAt, { size, count }: Blocks): number {
  return offset + (count - 1) * step + size;
}

/** The tensors are inputs 0 and 1, as words. */
const COPY_WORDS: Kernel<Blocks> = {
  op: 'jsepCopy',
  types: [],
  resolve(ctx, { count, size, source, target }) {
    const view = ({ offset, step }: BlocksAt) => ({ offset: offset / WORD, strides: [step / WORD, 1] });
    stridedCopy(ctx, ctx.input(0), view(source), ctx.input(1), view(target), [count, size / WORD]);
  },
};

// A thread makes a word of the target: bytes between the blocks keep their values.
const BYTES: Shader<Spec> = {
  name: 'copy_bytes',
  wgsl: () =>
    linearMain(`  let word = u.first + i;
  var value = y[word];
  for (var byte = 0u; byte < 4u; byte++) {
    // Before the first block it wraps around, to far past the last one.
    let at = word * 4u + byte - u.target_offset;
    let within = at % u.target_step;
    if (at / u.target_step < u.blocks && within < u.size) {
      let place = u.source_offset + at / u.target_step * u.source_step + within;
      value = insertBits(value, extractBits(x[place / 4u], place % 4u * 8u, 8u), byte * 8u, 8u);
    }
  }
  y[word] = value;`),
};

const COPY_BYTES: Kernel<Blocks> = {
  op: 'jsepCopy',
  types: [],
  resolve(ctx: Context, blocks) {
    const { size, count, source, target } = blocks;
    const first = Math.floor(target.offset / WORD);
    const words = Math.ceil(end(target, blocks) / WORD) - first;
    ctx.dispatch({
      shader: BYTES,
      spec: {},
      inputs: { x: ctx.input(0) },
      outputs: { y: ctx.input(1) },
      uniforms: {
        count: words,
        first,
        size,
        blocks: count,
        source_offset: source.offset,
        target_offset: target.offset,
        source_step: count > 1 ? source.step : size,
        target_step: count > 1 ? target.step : size,
      },
      workgroups: linearWorkgroups(words, ctx.device),
    });
  },
};
