// All operators, by name.
import { kernels } from 'virtual:kernels/webnn/operators';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import type { MlOperator } from './operator';

const all = new Map((kernels as readonly MlOperator[]).map((one) => [keyOf(one.op, one.domain ?? ''), one]));

export function findOperator(op: string, domain: string): MlOperator {
  const found = all.get(keyOf(op, domain));
  if (found) return found;
  throw new RuntimeError(ErrorCode.not_implemented, `webnn has no kernel for ${domain}::${op}`, { opType: op });
}

function keyOf(op: string, domain: string): string {
  return `${domain}::${op}`;
}
