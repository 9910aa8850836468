// RotaryEmbedding of ONNX and of com.microsoft: rotates pairs of a head's elements by an angle that depends on their
// position.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { columnsOf } from '../shared/columns';
import { Dialect } from '../../../../schema/dialect';

interface RotaryAttributes {
  readonly heads: number;
  readonly rotaryDim: number;
  readonly interleaved: boolean;
  /** Columns of x [batch, places, width]: [first, count]; empty: all. */
  readonly columns: readonly number[];
}

interface RotarySpec extends Spec {
  readonly interleaved: boolean;
  /** True if x is wider than y. */
  readonly columns: boolean;
  /** Positions: by batch and place, from one start, or none (the caches are then by batch and place). */
  readonly positions: 'each' | 'start' | 'none';
  readonly storage: StorageType;
}

const SHADER: Shader<RotarySpec> = {
  name: 'rotary_embedding__any',
  wgsl({ interleaved, columns, positions, storage }) {
    const position = {
      each: 'u32(positions[batch * u.places + place])',
      start: 'u32(positions[0]) + place',
      none: 'batch * u.places + place',
    }[positions];
    const at = columns ? 'at' : 'i';
    return linearMain(`${
      columns ? '  let at = i / u.place_step * u.pitch + u.first + i % u.place_step;\n' : ''
    }  let d = i % u.size;
  let place = i / u.place_step % u.places;
  let batch = i / (u.size * u.heads * u.places);
  if (d >= u.rotary_dim) { y[i] = x[${at}]; return; }
  let pair = ${interleaved ? 'd / 2u' : 'd % (u.rotary_dim / 2u)'};
  let second = ${interleaved ? 'd % 2u == 1u' : 'd >= u.rotary_dim / 2u'};
  let row = min(${position}, u.rows - 1u) * (u.rotary_dim / 2u) + pair;
  let distance = ${interleaved ? '1u' : 'u.rotary_dim / 2u'};
  let c = f32(cosine[row]);
  let s = f32(sine[row]);
  let own = f32(x[${at}]);
  let value = select(c * own - s * f32(x[${at} + select(distance, 0u, second)]),
    s * f32(x[${at} - select(0u, distance, second)]) + c * own, second);
  y[i] = ${stored(storage, 1, 'value')};`);
  },
};

function rotate(
  ctx: Context,
  x: Tensor,
  cosine: Tensor,
  sine: Tensor,
  positions: Tensor | undefined,
  a: RotaryAttributes,
): void {
  const { first, count, pitch } = columnsOf(x, a.columns);
  const dims = [...x.dims.slice(0, -1), count];
  const y = ctx.output(0, dims);
  const half = cosine.dims[cosine.dims.length - 1];
  const rotaryDim = a.rotaryDim || 2 * half;
  if (rotaryDim !== 2 * half)
    throw new KernelError(`RotaryEmbedding of ${rotaryDim} elements with caches of shape [${cosine.dims}]`);
  const wide = x.dims.length === 4;
  // Without a count of heads, the whole of a head is rotated.
  const heads = wide ? x.dims[1] : a.heads || count / rotaryDim;
  const places = wide ? x.dims[2] : x.dims[1];
  const size = wide ? count : count / heads;
  if (x.dims.length < 3 || !Number.isInteger(size))
    throw new KernelError(`RotaryEmbedding of [${dims}] in ${heads} heads`);
  ctx.dispatch({
    shader: SHADER,
    spec: {
      interleaved: a.interleaved,
      columns: count < pitch,
      positions: !positions ? 'none' : positions.size === 1 && x.dims[0] * places > 1 ? 'start' : 'each',
      storage: x.storage,
    },
    inputs: { x, cosine, sine, ...(positions && { positions }) },
    outputs: { y },
    uniforms: {
      count: y.size,
      size,
      heads,
      places,
      rows: cosine.size / half,
      rotary_dim: rotaryDim,
      place_step: wide ? size : size * heads,
      ...(count < pitch && { pitch, first }),
    },
    workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const attributes = (a: Attributes): RotaryAttributes => ({
  heads: a.integer('num_heads', 0),
  rotaryDim: a.integer('rotary_embedding_dim', 0),
  interleaved: a.integer('interleaved', 0) !== 0,
  columns: a.integers(Dialect.X_COLUMNS),
});
const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const INTEGERS: readonly DTypeName[] = ['int64', 'int32'];

const onnx: Kernel<RotaryAttributes> = {
  op: 'RotaryEmbedding',
  features: ['columns'],
  types: [FLOATS, FLOATS, FLOATS, INTEGERS],
  attributes,
  resolve: (ctx, a) => rotate(ctx, ctx.input(0), ctx.input(1), ctx.input(2), ctx.inputs[3], a),
};
const microsoft: Kernel<RotaryAttributes> = {
  op: 'RotaryEmbedding',
  domain: MICROSOFT_DOMAIN,
  features: ['columns'],
  types: [FLOATS, INTEGERS, FLOATS, FLOATS],
  attributes,
  resolve: (ctx, a) => rotate(ctx, ctx.input(0), ctx.input(2), ctx.input(3), ctx.input(1), a),
};

export default [onnx, microsoft];
