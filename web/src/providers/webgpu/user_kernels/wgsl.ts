// A user's WGSL: the body of one thread, or a whole module. The runtime adds bindings, uniforms and helpers.
import { type Binding, KernelError, type Shader, type Spec, type Tensor } from '../../../contract/kernel';
import { linearMain, linearWorkgroups } from '../wgsl';
import { directivesOf } from '../wgsl/tokens';
import { type HelpedTensor, helped, helperText, needsDims } from './helpers';
import { shaderStem, type UserCall } from './call';
import { evaluate, evaluateNumber, isTruth } from './sizes';

interface WgslSpec extends Spec {
  readonly text: string;
  readonly functions: string;
  /** For a body: the threads of a workgroup. */
  readonly size: number;
  readonly body: boolean;
  readonly tensors: readonly HelpedTensor[];
  /** Declarations of constants. */
  readonly constants: readonly string[];
}

function shaderOf(call: UserCall): Shader<WgslSpec> {
  const { text, form } = call.definition;
  return { name: `${shaderStem(call.definition)}__${form}`, wgsl: moduleText, own: text, unpacked: true };
}

function moduleText({ text, functions, size, body, tensors, constants }: WgslSpec): string {
  // Directives come first in a module.
  const directives = directivesOf(text);
  const main = body ? linearMain(text, { size, count: 'u.thread_count' }) : text.slice(directives.length);
  const helpers = helperText(`${text}\n${functions}`, tensors);
  return `${directives}\n${constants.join('\n')}\n${helpers}\n${functions}\n${main}`;
}

export function dispatchWgsl(call: UserCall): void {
  const { ctx, definition, inputs, outputs, env, f32, i32 } = call;
  const { text, functions, form, workgroupSize } = definition;
  const bound = Object.entries(boundInputs(call));
  const tensors = [
    ...bound.map(([name, tensor]) => helped(name, name in inputs ? tensor : { ...tensor, dims: [] }, false)),
    ...Object.entries(outputs).map(([name, tensor]) => helped(name, tensor, true)),
  ];
  const all = `${text}\n${functions}`;
  const dims = Object.fromEntries(
    tensors
      .filter((tensor) => tensor.rank > 0 && needsDims(all, tensor))
      .map(({ name }) => [`${name}_dim`, env.shapes[name]]),
  );
  const constants = definition.constants.map(
    ({ name, value }) => `const ${name} = ${constantText(evaluate(value, env), isTruth(value))};`,
  );
  const body = form === 'body';
  const threads = body ? evaluateNumber(definition.threads, env, `${definition.op}: threads`) : 0;
  ctx.dispatch({
    shader: shaderOf(call),
    spec: { text, functions, size: workgroupSize, body, tensors, constants },
    inputs: Object.fromEntries(bound) as { [name: string]: Binding },
    outputs,
    uniforms: { ...(body ? { thread_count: threads } : {}), ...dims, ...call.uniforms },
    f32,
    i32,
    workgroups: body ? linearWorkgroups(threads, ctx.device, workgroupSize) : workgroupsOf(call),
  });
}

/** An omitted input has a binding, too, so that one text fits both cases: the first input's memory. */
function boundInputs({ definition, inputs }: UserCall): { [name: string]: Tensor } {
  const [first] = Object.values(inputs);
  return Object.fromEntries(
    definition.inputs.filter(({ host }) => !host).map(({ name }) => [name, inputs[name] ?? first]),
  );
}

function workgroupsOf({ definition, env }: UserCall): [number, number, number] {
  const counts = definition.workgroups.map((tree) => evaluateNumber(tree, env, `${definition.op}: workgroups`));
  return [counts[0], counts[1] ?? 1, counts[2] ?? 1];
}

function constantText(value: unknown, truth: boolean): string {
  if (truth) return String(Boolean(value));
  if (typeof value !== 'number')
    throw new KernelError(`a constant of WGSL is a number or a condition, not ${JSON.stringify(value)}`);
  return String(value);
}
