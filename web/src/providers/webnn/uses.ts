// Which operands of a graph are made of which.
import type { MlBuilder, MlOperand } from './ml';

export class Uses {
  private readonly sources = new Map<unknown, readonly unknown[]>();

  /** The builder, whose calls are noted. */
  followed(builder: MlBuilder): MlBuilder {
    return new Proxy(builder, {
      get: (target, op: string) => {
        return (...given: never[]) => {
          const made = target[op](...given);
          for (const operand of [made].flat()) this.sources.set(operand, given.flatMap(partsOf));
          return made;
        };
      },
    });
  }

  /** These, and all that they are made of. */
  reached(operands: readonly MlOperand[]): ReadonlySet<unknown> {
    const found = new Set<unknown>(operands);
    for (const operand of found) for (const source of this.sources.get(operand) ?? []) found.add(source);
    return found;
  }
}

/** Operands are arguments, in lists, or in options. */
function partsOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  return [value, ...Object.values(value).flatMap(partsOf)];
}
