// Data goes to the worker and comes back without copies.
const worker = new Worker('worker.mjs', { type: 'module' });
const data = new Float32Array(4 * 8 * 8).fill(0.5);
worker.onmessage = ({ data: answer }) => {
  document.querySelector('#result').textContent = answer.error ?? JSON.stringify(answer);
};
worker.postMessage({ data, dims: [1, 4, 8, 8] }, [data.buffer]);
