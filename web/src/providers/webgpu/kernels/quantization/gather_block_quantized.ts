// com.microsoft's GatherBlockQuantized: elements of a table quantized in blocks, dequantized while they are gathered.
import {
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import {
  FLOATS,
  INDEX_WGSL,
  INDICES,
  linearMain,
  linearWorkgroups,
  load,
  normalizeAxis,
  sizeOf,
  stored,
} from '../../wgsl';

interface BlockSpec extends Spec {
  readonly bits: number;
  readonly zeros: boolean;
  readonly storage: StorageType;
}

// The table is [outer, dim, inner] around the gathered axis, and [before, size, after] around the axis with blocks.
const SHADER: Shader<BlockSpec> = {
  name: 'gather_block_quantized',
  wgsl({ bits, zeros, storage }) {
    const unpacked = (name: string, at: string) =>
      `f32((${name}[(${at}) * ${bits}u / 8u] >> ((${at}) * ${bits}u % 8u)) & ${2 ** bits - 1}u)`;
    // Each row of zero points is padded to whole bytes.
    const zero = zeros ? unpacked('zeros', 'block / u.row * u.padded_row + block % u.row') : `${2 ** (bits - 1)}.0`;
    return `${INDEX_WGSL}${linearMain(`  let rest = i / u.inner;
  let index = index_within(i32(indices[rest % u.indices_count]), u.dim);
  let at = (rest / u.indices_count * u.dim + index) * u.inner + i % u.inner;
  let place = at / u.after;
  let block = (place / u.size * u.blocks + place % u.size / u.block) * u.after + at % u.after;
  y[i] = ${stored(storage, 1, `(${unpacked('x', 'at')} - ${zero}) * ${load(storage, 1, 'scales[block]')}`)};`)}`;
  },
};

interface Attributes {
  readonly gather: number;
  readonly quantize: number;
  readonly block: number;
  readonly bits: number;
}

const gatherBlockQuantized: Kernel<Attributes> = {
  op: 'GatherBlockQuantized',
  domain: MICROSOFT_DOMAIN,
  types: [['uint8'], INDICES, FLOATS, ['uint8']],
  requires: [{ attribute: 'bits', values: [4, 8], otherwise: 'other bits than 4 and 8' }],
  attributes: (a) => ({
    gather: a.integer('gather_axis', 0),
    quantize: a.integer('quantize_axis', 1),
    block: a.integer('block_size', 128),
    bits: a.integer('bits', 4),
  }),
  resolve(ctx, { gather, quantize, block, bits }) {
    const [x, indices, scales, zeros] = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.inputs[3]];
    const rank = x.dims.length;
    const dims = x.dims.map((dim, axis) => (axis === rank - 1 ? (dim * 8) / bits : dim));
    const [axis, blocked] = [normalizeAxis(gather, rank), normalizeAxis(quantize, rank)];
    const blocks = Math.ceil(dims[blocked] / block);
    if (scales.dims.join() !== dims.map((dim, k) => (k === blocked ? blocks : dim)).join()) {
      throw new KernelError(`GatherBlockQuantized of [${dims}] in blocks of ${block} with scales [${scales.dims}]`);
    }
    const y = ctx.output(0, [...dims.slice(0, axis), ...indices.dims, ...dims.slice(axis + 1)], scales.dtype);
    const row = scales.dims[rank - 1];
    const elements = 8 / bits;
    ctx.dispatch({
      shader: SHADER,
      spec: { bits, zeros: zeros !== undefined, storage: scales.storage },
      inputs: { x, indices, scales, ...(zeros && { zeros }) },
      outputs: { y },
      uniforms: {
        count: y.size,
        inner: sizeOf(dims.slice(axis + 1)),
        indices_count: indices.size,
        dim: dims[axis],
        after: sizeOf(dims.slice(blocked + 1)),
        size: dims[blocked],
        blocks,
        block,
        ...(zeros && { row, padded_row: Math.ceil(row / elements) * elements }),
      },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [gatherBlockQuantized];
