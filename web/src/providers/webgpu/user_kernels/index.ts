// Kernels that a user declared in Python (py_ort/user_kernels): from their definitions to ordinary kernels.
import type { Attributes } from '../../../contract/attributes';
import { dtypeOf } from '../../../contract/elements';
import type { Context, DTypeName, Kernel, Tensor } from '../../../contract/kernel';
import { KernelError } from '../../../contract/kernel';
import type { UserCall } from './call';
import { type AttributeValue, readDefinitions, type UserDefinition } from './definition';
import { dispatchExpression } from './expression';
import { type Env, evaluateNumber, evaluateShape } from './sizes';
import { dispatchWgsl } from './wgsl';

/** By domain:operator. */
export function userKernels(json: string): ReadonlyMap<string, Kernel> {
  return new Map(
    readDefinitions(json).map((definition) => [`${definition.domain}:${definition.op}`, userKernel(definition)]),
  );
}

function userKernel(definition: UserDefinition): Kernel {
  const kernel: Kernel<{ [name: string]: AttributeValue }> = {
    op: definition.op,
    domain: definition.domain,
    types: [],
    attributes: (attributes) => readAttributes(definition, attributes),
    resolve(ctx, attributes) {
      const call = prepare(ctx, definition, attributes);
      if (Object.values(call.outputs).every(({ size }) => size === 0)) return;
      if (definition.form === 'expression') dispatchExpression(call);
      else dispatchWgsl(call);
    },
  };
  return kernel as Kernel;
}

function readAttributes({ op, attributes }: UserDefinition, given: Attributes): { [name: string]: AttributeValue } {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, { kind, default: otherwise }]) => {
      if (otherwise === null && !given.has(name)) throw new KernelError(`${op} needs its attribute '${name}'`);
      const value: AttributeValue = !given.has(name)
        ? otherwise!
        : kind === 's'
          ? given.text(name, '')
          : kind === 'ss'
            ? given.texts(name)
            : kind === 'is' || kind === 'fs'
              ? given.numbers(name)
              : given.number(name, 0);
      return [name, value];
    }),
  );
}

function prepare(ctx: Context, definition: UserDefinition, attributes: { [name: string]: AttributeValue }): UserCall {
  const inputs: { [name: string]: Tensor } = {};
  const shapes: { [name: string]: readonly number[] } = {};
  definition.inputs.forEach(({ name, optional, host }, i) => {
    const tensor = optional ? ctx.inputs[i] : ctx.input(i);
    if (!tensor) return;
    shapes[name] = tensor.dims;
    if (!host) inputs[name] = tensor;
  });
  const positions = new Map(definition.inputs.map(({ name }, i) => [name, i]));
  const env: Env = {
    shapes,
    attributes,
    values: (name) => ctx.data(positions.get(name)!) ?? [],
  };
  const outputs: { [name: string]: Tensor } = {};
  const made = definition.outputs.map(({ name, dtype, shape }, i): [string, Tensor] => {
    const dims = evaluateShape(shape, env, `${definition.op}: the shape of ${name}`);
    const like = positions.get(dtype);
    const type = like === undefined ? dtypeOf(dtype as DTypeName) : ctx.input(like).dtype;
    return [name, i < ctx.outputCount ? ctx.output(i, dims, type) : ctx.temp(dims, type)];
  });
  for (const [name, tensor] of made) {
    outputs[name] = tensor;
    shapes[name] = tensor.dims;
  }
  const uniforms: { [name: string]: number } = {};
  for (const { name, type, value } of definition.uniforms) {
    const number = evaluateNumber(value, env, `${definition.op}: uniform ${name}`);
    uniforms[name] = type === 'f32' ? number : Math.trunc(number);
  }
  const ofType = (wanted: string) => definition.uniforms.filter(({ type }) => type === wanted).map(({ name }) => name);
  return { ctx, definition, inputs, outputs, env, uniforms, f32: ofType('f32'), i32: ofType('i32') };
}
