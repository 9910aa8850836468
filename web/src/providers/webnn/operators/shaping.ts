// What moves elements.
import type { DTypeName } from '../../../contract/kernel';
import type { Call, Emit, MlOperator } from '../operator';

const ANY: readonly DTypeName[] = ['float32', 'float16', 'int32', 'uint32', 'int64', 'int8', 'uint8', 'bool'];

function reshape({ inputs, attributes, data }: Call): Emit {
  const { dims, size } = inputs[0]!;
  const copied = attributes.integer('allowzero', 0) === 0;
  const asked = data(1)!.map((d, i) => (d === 0 && copied ? dims[i] : d));
  const known = asked.reduce((product, d) => (d < 0 ? product : product * d), 1);
  const shape = asked.map((d) => (d < 0 ? size / known : d));
  return (builder, [x]) => builder.reshape(x as never, shape as never) as never;
}

function concat({ inputs, attributes }: Call): Emit {
  const axis = attributes.integer('axis', 0);
  const along = axis < 0 ? axis + inputs[0]!.dims.length : axis;
  return (builder, x) => builder.concat([...x] as never, along as never) as never;
}

function transpose({ inputs, attributes }: Call): Emit {
  const backwards = inputs[0]!.dims.map((_, i, all) => all.length - 1 - i);
  const permutation = attributes.integers('perm', backwards);
  return (builder, [x]) => builder.transpose(x as never, { permutation } as never) as never;
}

export default [
  { op: 'Reshape', types: [ANY], emit: reshape },
  { op: 'Concat', types: [ANY], emit: concat },
  { op: 'Transpose', types: [ANY], emit: transpose },
] satisfies MlOperator[];
