// RotaryEmbedding of ONNX and of com.microsoft.
import { type DTypeName, MICROSOFT_DOMAIN } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { formula, range } from './shared/calls';
import { inHeads, inRows } from './shared/attend';
import { angles, rotated } from './shared/rotation';
import { INDICES } from './shared/types';

function rotary(
  f: Formula,
  x: MlOperand,
  caches: readonly MlOperand[],
  positions: MlOperand | undefined,
  { attributes }: Call,
): MlOperand {
  const wide = x.shape.length === 4;
  const half = caches[0].shape.at(-1)!;
  // Without a count of heads, the whole of a head is rotated.
  const heads = wide ? x.shape[1] : attributes.integer('num_heads', 0) || x.shape[2] / (2 * half);
  const [batch, places] = [x.shape[0], x.shape[wide ? 2 : 1]];
  const each = (): readonly MlOperand[] => {
    if (!positions) return caches.map((cache) => f.cast(cache, 'float32'));
    const first = f.cast(positions, 'int32');
    const start = sizeOf(positions.shape) === 1 && batch * places > 1;
    const at = start ? f.plain('add', f.reshape(first, [1]), f.constant(range(places))) : first;
    return caches.map((cache) => angles(f, cache, start ? at : f.reshape(at, [batch, places])));
  };
  const y = rotated(f, inHeads(f, x, heads), each(), attributes.integer('interleaved', 0) !== 0);
  return wide ? y : inRows(f, y);
}

const POSITIONS: readonly DTypeName[] = INDICES;

export default [
  {
    op: 'RotaryEmbedding',
    types: [FLOATS, FLOATS, FLOATS, POSITIONS],
    emit: formula((f, [x, cosine, sine, positions], call) => rotary(f, x, [cosine, sine], positions, call)),
  },
  {
    op: 'RotaryEmbedding',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS, POSITIONS, FLOATS, FLOATS],
    emit: formula((f, [x, positions, cosine, sine], call) => rotary(f, x, [cosine, sine], positions, call)),
  },
] satisfies MlOperator[];
