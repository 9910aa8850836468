// model.pyort, run once. Sessions have a worker by themselves, so the page stays free.
import { InferenceSession, Tensor } from '../runtime/py_ort.mjs';

const result = document.querySelector('#result');
try {
  const session = await InferenceSession.create('model.pyort', { executionProviders: ['webgpu', 'wasm'] });
  const [{ name, shape }] = session.inputMetadata;
  const dims = shape.map((size) => (typeof size === 'number' ? size : 1));
  const data = new Float32Array(dims.reduce((product, size) => product * size, 1)).fill(0.5);
  const outputs = await session.run({ [name]: new Tensor('float32', data, dims) });
  const output = outputs[session.outputNames[0]];
  result.textContent = JSON.stringify({ on: session.executionProviders, dims: output.dims, data: [...output.data] });
  await session.release();
} catch (error) {
  result.textContent = error.message;
}
