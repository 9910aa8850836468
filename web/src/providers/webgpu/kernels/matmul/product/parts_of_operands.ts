// Products of matrices that are larger than the device can bind: parts of the rows of a, of k, or of the rows of a
// transposed b.
import type { Context, Tensor } from '../../../../../contract/kernel';
import { readsResidual, recognized, residualFirst, SUM } from '../../../wgsl/epilogue';
import { bindsWhole, partsAlong } from '../../../wgsl/large';
import type { Product } from './product';

/** The products that make up `p`, or undefined if it fits or cannot be cut. They must run in order. */
export function cutProduct(ctx: Context, p: Product): Product[] | undefined {
  if (
    p.left !== 'matrix' ||
    p.z !== 1 ||
    [p.a, p.b, p.y, p.residual].every((tensor) => !tensor || bindsWhole(tensor, ctx.device))
  )
    return undefined;
  const { m, n, depth, lda, ldb, ldy } = p;
  const residualRow = p.residualColumns?.pitch ?? ldy;
  const from = (tensor: Tensor, start: number, end: number) =>
    ctx.window(tensor, start, [Math.min(end, tensor.size) - start]);
  if (!bindsWhole(p.a, ctx.device) || !bindsWhole(p.y, ctx.device)) {
    const tall = [
      { tensor: p.a, row: lda },
      { tensor: p.y, row: ldy },
      ...(p.residual ? [{ tensor: p.residual, row: residualRow }] : []),
    ];
    return p.biasStrides
      ? undefined
      : partsAlong(m, tall, ctx.device)?.map(([begin, end]) => ({
          ...p,
          m: end - begin,
          a: from(p.a, begin * lda, end * lda),
          y: from(p.y, begin * ldy, end * ldy),
          residual: p.residual && from(p.residual, begin * residualRow, end * residualRow),
        }));
  }
  if (p.transposed) {
    if (p.bias || p.residual) return undefined;
    return partsAlong(
      n,
      [
        { tensor: p.b, row: ldb },
        { tensor: p.y, row: 1 },
      ],
      ctx.device,
    )?.map(([begin, end]) => ({
      ...p,
      n: end - begin,
      b: from(p.b, begin * ldb, end * ldb),
      y: from(p.y, begin, p.y.size),
    }));
  }
  const late = p.epilogue && p.residual && recognized(p.epilogue)?.residual !== 'first';
  if (late || p.a.id === p.y.id) return undefined;
  const parts = partsAlong(
    depth,
    [
      { tensor: p.b, row: ldb },
      { tensor: p.a, row: 1 },
    ],
    ctx.device,
  );
  // Each part has the sum of the previous ones as its residual; bias and epilogue belong to the last.
  let [sum, columns] = [p.residual, p.residualColumns];
  return parts?.map(([begin, end], k) => {
    const last = k === parts.length - 1;
    const part: Product = {
      ...p,
      a: from(p.a, begin, p.a.size),
      b: from(p.b, begin * ldb, end * ldb),
      depth: end - begin,
      residual: sum,
      residualColumns: columns,
      epilogue: !last ? sum && SUM : readsResidual(p.epilogue?.instructions) ? p.epilogue : residualFirst(p.epilogue),
      ...(!last && { y: ctx.temp(p.y.dims, p.y.dtype), bias: undefined }),
    };
    sum = part.y;
    columns = undefined;
    return part;
  });
}
