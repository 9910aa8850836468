// A session in a worker runs there: what comes before and after the model is out of the page's way, too.
import { InferenceSession, Tensor } from '../runtime/py_ort.mjs';

const session = InferenceSession.create('model.pyort', { executionProviders: ['webgpu', 'wasm'] });

self.onmessage = async ({ data: { data, dims } }) => {
  try {
    const model = await session;
    const outputs = await model.run({ [model.inputNames[0]]: new Tensor('float32', data, dims) });
    const output = outputs[model.outputNames[0]];
    self.postMessage({ on: model.executionProviders, dims: output.dims, data: [...output.data] });
  } catch (error) {
    self.postMessage({ error: error.message });
  }
};
