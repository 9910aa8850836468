// Col2Im: each pixel is the sum of the blocks' elements over it. One thread for a pixel.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { sizeOf } from '../../../../contract/shape';
import { readWindow, slide, type WindowAttributes } from '../../../../contract/window';

interface Col2ImSpec extends Spec {
  readonly axes: number;
  readonly storage: StorageType;
}

const SHADER: Shader<Col2ImSpec> = {
  name: 'col2im__any',
  wgsl({ axes, storage }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const decode = [...all]
      .reverse()
      .map((axis) => `let out_${axis} = rest % u.image_${axis}; rest = rest / u.image_${axis};`);
    // pixel = place * stride + k * dilation - pad
    const open = all.map(
      (axis) => `for (var k_${axis} = 0u; k_${axis} < u.block_${axis}; k_${axis}++) {
    let from_${axis} = out_${axis} + u.pad_${axis};
    let reach_${axis} = k_${axis} * u.dilation_${axis};
    let place_${axis} = (from_${axis} - reach_${axis}) / u.stride_${axis};
    if (from_${axis} < reach_${axis} || place_${axis} >= u.places_${axis} 
      || place_${axis} * u.stride_${axis} + reach_${axis} != from_${axis}) { continue; }`,
    );
    const within = (size: string, index: string) =>
      all.reduce((text, axis) => (axis === 0 ? `${index}_0` : `(${text}) * u.${size}_${axis} + ${index}_${axis}`), '');
    return linearMain(`  var rest = i;
  ${decode.join('\n  ')}
  var sum = 0.0;
  ${open.join('\n  ')}
    sum += ${load(
      storage,
      1,
      `x[(rest * u.taps + ${within('block', 'k')}) * u.columns + ${within('places', 'place')}]`,
    )};
  ${'}'.repeat(axes)}
  y[i] = ${stored(storage, 1, 'sum')};`);
  },
};

const col2Im: Kernel<WindowAttributes> = {
  op: 'Col2Im',
  types: [['float32', 'float16'], [], []],
  attributes: readWindow,
  resolve(ctx, window) {
    const x = ctx.input(0);
    const [image, block] = [ctx.data(1) ?? [], ctx.data(2) ?? []];
    const axes = image.length;
    const taps = sizeOf(block);
    const { output: places, strides, dilations, begins } = slide(window, image, block);
    if (x.dims.length !== 3 || x.dims[1] % taps !== 0 || x.dims[2] !== sizeOf(places))
      throw new KernelError(`Col2Im of [${x.dims}] to [${image}] by blocks of [${block}]`);
    const y = ctx.output(0, [x.dims[0], x.dims[1] / taps, ...image]);
    ctx.dispatch({
      shader: SHADER,
      spec: { axes, storage: x.storage },
      inputs: { x },
      outputs: { y },
      uniforms: {
        count: y.size,
        image,
        block,
        places,
        stride: strides,
        dilation: dilations,
        pad: begins,
        taps,
        columns: x.dims[2],
      },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [col2Im];
