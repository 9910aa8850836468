// The page: an image, what was found in it, and what it says.
import { load, read } from './ocr.mjs';

const canvas = document.querySelector('canvas');
const status = document.querySelector('#status');
const provider = new URL(location).searchParams.get('provider');

function show(image, lines) {
  const { width, height } = image;
  Object.assign(canvas, { width: 2 * width, height });
  const context = canvas.getContext('2d');
  context.fillStyle = 'white';
  context.fillRect(0, 0, 2 * width, height);
  context.drawImage(image, 0, 0);
  for (const line of lines) {
    context.save();
    context.translate(line.x, line.y);
    context.rotate(line.angle);
    context.strokeStyle = 'crimson';
    context.lineWidth = 2;
    context.strokeRect(-line.width / 2, -line.height / 2, line.width, line.height);
    context.restore();
    context.save();
    context.translate(line.x + width, line.y);
    context.rotate(line.angle);
    context.fillStyle = 'black';
    context.font = `${Math.round(line.height * 0.9)}px sans-serif`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(line.text, 0, 0, line.width);
    context.restore();
  }
}

const models = load({ executionProviders: provider ? [provider] : ['webgpu', 'wasm'] });

/** Reads an image and shows it. */
async function open(blob) {
  const image = await createImageBitmap(blob);
  const began = performance.now();
  const { lines, ran } = await read(image, await models);
  show(image, lines);
  const { executionProviders } = (await models).recognition;
  const time = Math.round(performance.now() - began);
  status.textContent = `${lines.length} lines in ${time} ms, on ${executionProviders[0]}`;
  return { lines, ran, executionProviders };
}

document.querySelector('input').onchange = ({ target }) => open(target.files[0]);
/** The result for the sample, for tests and consoles. */
globalThis.sampleRead = fetch('sample.png')
  .then((response) => response.blob())
  .then(open);
globalThis.sampleRead.catch((error) => {
  status.textContent = error.message;
});
