// Everything is fetched behind the service worker, which keeps it: runtime and model are there the next time.
const result = document.querySelector('#result');
try {
  await navigator.serviceWorker.register('service_worker.js');
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve));
  }
  const { InferenceSession, Tensor } = await import('./runtime/py_ort.mjs');
  const session = await InferenceSession.create('model.pyort', { executionProviders: ['webgpu', 'wasm'] });
  const x = new Tensor('float32', new Float32Array(4 * 8 * 8).fill(0.5), [1, 4, 8, 8]);
  const outputs = await session.run({ [session.inputNames[0]]: x });
  const output = outputs[session.outputNames[0]];
  result.textContent = JSON.stringify({ on: session.executionProviders, dims: output.dims, data: [...output.data] });
} catch (error) {
  result.textContent = error.message;
}
