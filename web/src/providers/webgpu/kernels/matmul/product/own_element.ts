// Products on devices whose threads write only the element of their own index. The provider of such devices supplies
// the form, so that pages without that provider do not load it.
import { type Context, KernelError } from '../../../../../contract/kernel';
import type { Product } from './product';
import type { ProductSpec } from './spec';

type Multiply = (ctx: Context, product: Product, spec: ProductSpec) => void;

let form: Multiply | undefined;

export function bringOwnElementProduct(multiply: Multiply): void {
  form = multiply;
}

export const multiplyOwnElements: Multiply = (ctx, product, spec) => {
  if (!form) throw new KernelError('no provider brought products of an element a thread', true);
  form(ctx, product, spec);
};
