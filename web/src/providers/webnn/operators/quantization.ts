import { sizeOf } from '../../../contract/shape';
import { DType } from '../../../schema';
import type { Formula, Steps } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { axesUpTo, axisOf, formula } from './shared/calls';
import { zerosLike } from './shared/integers';
import { BYTES } from './shared/types';

/** A scale or zero point with as many axes as x: one for all, per index of an axis, or per block along it. */
function spread(f: Formula, given: MlOperand, { shape }: MlOperand, axis: number, block: number): MlOperand {
  const [count, all] = [sizeOf(given.shape), shape[axis]];
  if (!block)
    return f.reshape(
      given,
      shape.map((_, i) => (i === axis && count > 1 ? count : 1)),
    );
  if (all % block === 0) return given;
  // WebNN's blocks are whole.
  const [before, along, behind] = [given.shape.slice(0, axis), given.shape[axis], given.shape.slice(axis + 1)];
  const each = f.plain('expand', f.reshape(given, [...before, along, 1, ...behind]), [
    ...before,
    along,
    block,
    ...behind,
  ]);
  const zeros = shape.map(() => 0);
  return f.plain('slice', f.reshape(each, [...before, along * block, ...behind]), zeros, [...shape]);
}

/** A scale and a zero point, per index of an axis or per block. */
function stepped(f: Formula, x: MlOperand, scale: MlOperand, zero: MlOperand, call: Call): Steps {
  const block = call.attributes.integer('block_size', 0);
  // A scale for all has no axis, and its default may be outside.
  const axis = block || sizeOf(scale.shape) > 1 ? axisOf(call, 1) : 0;
  return [spread(f, scale, x, axis, block), spread(f, zero, x, axis, block)];
}

const quantize = formula((f, [x, scale, zero], call) => {
  const type = call.attributes.integer('output_dtype', 0) === DType.int8 ? 'int8' : 'uint8';
  const floats = f.cast(x, scale.dataType);
  const zeros = zero ?? zerosLike(f, scale, type);
  if (sizeOf(scale.shape) === 1) return f.quantized(floats, [scale, zeros]);
  return f.plain('quantizeLinear', floats, ...stepped(f, x, scale, zeros, call));
});

const dequantize = formula((f, [x, scale, zero], call) => {
  const steps = stepped(f, x, scale, zero ?? zerosLike(f, scale, x.dataType), call);
  return f.inAnySteps(f.plain('dequantizeLinear', x, ...steps));
});

const between = (f: Formula, x: MlOperand) => f.of('min', f.of('max', f.of('roundEven', x), 0), 255);

export default [
  {
    op: 'QuantizeLinear',
    types: [FLOATS, FLOATS, BYTES],
    requires: [
      ...axesUpTo(5, 0),
      { attribute: 'output_dtype', values: [0, DType.uint8, DType.int8], otherwise: 'this type of result' },
    ],
    emit: quantize,
  },
  {
    op: 'DequantizeLinear',
    types: [[...BYTES, 'int32'], FLOATS, [...BYTES, 'int32']],
    requires: axesUpTo(5, 0),
    emit: dequantize,
  },
  {
    op: 'DynamicQuantizeLinear',
    types: [['float32']],
    requires: axesUpTo(5, 0),
    emit: formula((f, [x]) => {
      const axes = { axes: x.shape.map((_, i) => i) };
      const least = f.of('min', f.plain('reduceMin', x, axes), 0);
      const most = f.of('max', f.plain('reduceMax', x, axes), 0);
      const width = f.of('div', f.of('sub', most, least), 255);
      const step = f.of('where', f.of('equal', width, 0), f.number(x, 1), width);
      const zero = between(f, f.of('neg', f.of('div', least, step)));
      const y = f.of('min', f.of('max', f.of('add', f.of('roundEven', f.of('div', x, step)), zero), 0), 255);
      return [f.cast(y, 'uint8'), step, f.cast(zero, 'uint8')];
    }),
  },
] satisfies MlOperator[];
