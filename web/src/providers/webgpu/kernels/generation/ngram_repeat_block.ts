// NGramRepeatBlock of com.microsoft: tokens that would repeat an earlier n-gram get the lowest score.
import { type Kernel, KernelError, MICROSOFT_DOMAIN, type Shader, type Spec } from '../../../../contract/kernel';
import { linearMain, linearWorkgroups, mathFunctions } from '../../wgsl';

interface BlockSpec extends Spec {
  readonly length: number;
}

// A thread has a score: it looks for its token after earlier occurrences of the last tokens.
const BLOCK: Shader<BlockSpec> = {
  name: 'ngram_repeat_block__any',
  wgsl: ({ length }) => {
    const before = Array.from(
      { length: length - 1 },
      (_, k) => `ids[row + at + ${k}u] == ids[row + u.positions - ${length - 1 - k}u]`,
    );
    return (
      mathFunctions('infinity') +
      linearMain(`  let token = i32(i % u.vocabulary);
  let row = i / u.vocabulary * u.positions;
  var value = scores[i];
  for (var at = 0u; at + ${length}u <= u.positions; at++) {
    if (ids[row + at + ${length - 1}u] == token) {
      if (${before.join(' && ') || 'true'}) {
        value = -infinity();
        break;
      }
    }
  }
  y[i] = value;`)
    );
  },
};

/** input_ids [batch, positions], scores [batch, vocabulary] */
const ngramRepeatBlock: Kernel<number> = {
  op: 'NGramRepeatBlock',
  domain: MICROSOFT_DOMAIN,
  types: [['int64'], ['float32']],
  attributes: (a) => a.integer('ngram_size', 0),
  resolve(ctx, length) {
    const [ids, scores] = [ctx.input(0), ctx.input(1)];
    if (length < 1) throw new KernelError(`NGramRepeatBlock needs an ngram_size above 0, not ${length}`);
    if (ids.dims.length !== 2 || scores.dims.length !== 2 || ids.dims[0] !== scores.dims[0]) {
      throw new KernelError(`NGramRepeatBlock got input_ids of [${ids.dims}] and scores of [${scores.dims}]`);
    }
    const y = ctx.output(0, scores.dims, scores.dtype);
    ctx.dispatch({
      shader: BLOCK,
      spec: { length },
      inputs: { ids, scores },
      outputs: { y },
      uniforms: { count: y.size, positions: ids.dims[1], vocabulary: scores.dims[1] },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [ngramRepeatBlock];
