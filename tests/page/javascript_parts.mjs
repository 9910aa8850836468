// Parts of the pages' cases.
import { lasting } from './javascript_checks.mjs';
import { InferenceSession, Tensor } from './py_ort.mjs';

/** The first available one, as most cases need it. */
export const executionProviders = ['webgpu', 'wasm'];
export const create = (name, options) =>
  lasting(InferenceSession.create(`${name}.pyort`, options === null ? null : { executionProviders, ...options }));
export const x = new Tensor('float32', [1, 2, 3], [1, 3]);
export const scale = new Tensor('float32', [10, 20, 30]);

/** Collects the console's messages until `stop`. */
export function listening(method) {
  const said = [];
  const real = console[method];
  console[method] = (text) => said.push(text);
  said.stop = () => {
    console[method] = real;
  };
  return said;
}
