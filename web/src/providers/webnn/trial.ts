// Tries calls of operators in the browser, which reports at once their results, or the reason of a refusal.
import { Attributes } from '../../contract/attributes';
import { type Forms, toNumbers } from '../../contract/elements';
import type { Tensor } from '../../contract/kernel';
import { makeTensor } from '../../device/call';
import type { AskedCall } from '../../device/single';
import { messageOf } from '../../errors';
import { Formula } from './formula';
import { descriptorOf, type MlContext, type MlDescriptor, type MlOperand } from './ml';
import type { Call, Emit } from './operator';
import { findOperator } from './registry';

interface Given {
  readonly tensor: Tensor;
  readonly bytes?: Uint8Array;
}

/** An input on the device: its id, and the type and shape that the node reads it with. */
export interface Read {
  readonly id: number;
  readonly descriptor: MlDescriptor;
}

/** @param reads is called with the index of each host input whose elements are read. */
export function callOf(
  attributes: Attributes | undefined,
  inputs: readonly (Given | undefined)[],
  wants: readonly boolean[],
  reads?: (input: number) => void,
): Call {
  return {
    attributes: attributes ?? new Attributes({}),
    inputs: inputs.map((input) => input?.tensor),
    wants,
    data: (i) => {
      const input = inputs[i];
      if (!input?.bytes) return undefined;
      reads?.(i);
      return toNumbers(input.tensor.dtype, input.bytes);
    },
  };
}

export function readsOf({ inputs }: Call): readonly (Read | undefined)[] {
  return inputs.map((tensor) =>
    tensor?.location === 'gpu' ? { id: tensor.id, descriptor: descriptorOf(tensor) } : undefined,
  );
}

/** Types and shapes of a node's outputs, according to the browser. */
export function shapesOf(context: MlContext, emit: Emit, read: readonly (Read | undefined)[]): readonly MlDescriptor[] {
  const f = new Formula(context);
  const operands = read.map((one, i) => one && f.builder.input(`i${i}`, one.descriptor));
  return [emit(f, operands as MlOperand[])].flat().map(({ dataType, shape }) => ({ dataType, shape }));
}

/** The reason why the browser refuses a call. */
export function refusalOf(context: MlContext, elements: Forms, asked: AskedCall): string | undefined {
  const inputs = asked.inputs.map((input, i) => {
    if (!input) return undefined;
    const bytes = 'bytes' in input.data ? input.data.bytes : undefined;
    return { tensor: makeTensor(elements, i, input.dtype, input.dims, bytes ? 'cpu' : 'gpu'), bytes };
  });
  try {
    const call = callOf(new Attributes(asked.attributes), inputs, new Array<boolean>(asked.outputs).fill(true));
    shapesOf(context, findOperator(asked.op, asked.domain).emit(call), readsOf(call));
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

export const BOOL_AS = 'uint8';
