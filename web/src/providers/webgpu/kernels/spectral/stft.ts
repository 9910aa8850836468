// STFT: overlapping frames of a signal, each multiplied by a window and transformed.
import { type Kernel, KernelError } from '../../../../contract/kernel';
import { elementwise, elementwiseShader, FLOATS, HOST, stridedCopy, stridesOf } from '../../wgsl';
import { transform } from './dft';

const WINDOWED = elementwiseShader('windowed', () => 'fn apply(x: F, window: F) -> R { return x * window; }');

const stft: Kernel<{ oneSided: boolean }> = {
  op: 'STFT',
  types: [FLOATS, HOST, FLOATS, HOST],
  attributes: (a) => ({ oneSided: a.integer('onesided', 1) !== 0 }),
  resolve(ctx, { oneSided }) {
    const [x, window] = [ctx.input(0), ctx.inputs[2]];
    const [batch, samples, parts = 1] = x.dims;
    const step = ctx.data(1)?.[0] ?? 0;
    const length = ctx.data(3)?.[0] ?? window?.size ?? 0;
    if (
      x.dims.length < 2 ||
      x.dims.length > 3 ||
      parts > 2 ||
      step <= 0 ||
      length <= 0 ||
      length > samples ||
      (window && window.size !== length)
    ) {
      throw new KernelError(
        `STFT of [${x.dims}] in frames of ${length}, ${step} apart${window ? `, with a window of ${window.size}` : ''}`,
      );
    }
    const frames = Math.floor((samples - length) / step) + 1;
    const y = ctx.output(0, [batch, frames, oneSided ? Math.floor(length / 2) + 1 : length, 2]);
    const dims = [batch, frames, length, parts];
    const cut = ctx.temp(dims, x.dtype);
    stridedCopy(
      ctx,
      x,
      { strides: [samples * parts, step * parts, parts, 1] },
      cut,
      { strides: stridesOf(dims) },
      dims,
    );
    const framed = window ? ctx.temp(dims, x.dtype) : cut;
    if (window) elementwise(ctx, WINDOWED, { x: cut, window: ctx.reshape(window, [length, 1]) }, framed);
    transform(ctx, framed, y, { axis: 2, length });
  },
};

export default [stft];
