// PP-OCR in a page: finds lines of text, turns them upright, reads them.
import { InferenceSession, Tensor } from '../runtime/py_ort.mjs';
import { findLines } from './boxes.mjs';

const LONGEST_SIDE = 640;
/** Of a line as the models take it. */
const HEIGHT = 48;
const UPRIGHT_WIDTH = 192;
const SURE_THAT_IT_IS_UPSIDE_DOWN = 0.9;

/** Loads the three models and the characters that the last of them knows. */
export async function load(options) {
  const create = (name) => InferenceSession.create(`models/${name}.pyort`, options);
  const [detection, classification, recognition, characters] = await Promise.all([
    create('detection'),
    create('classification'),
    create('recognition'),
    fetch('models/characters.json').then((response) => response.json()),
  ]);
  return { detection, classification, recognition, characters };
}

/** The pixels of an image as it is. */
function pixelsOf(image) {
  const { width, height } = image;
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** How much four neighbors count for a point `t` behind the second of them: cubic, which keeps letters sharp. */
function cubic(t) {
  const near = (d) => (1.5 * d - 2.5) * d * d + 1;
  const far = (d) => ((-0.5 * d + 2.5) * d - 4) * d + 2;
  return [far(1 + t), near(t), near(1 - t), far(2 - t)];
}

/**
 * Another picture of the pixels. Browsers' canvases scale each in a way of their own, in which spaces may get lost.
 *
 * @param shown columns that are drawn; what lies right of them is gray.
 * @param place where in the pixels a point of the picture is.
 */
function sampled(pixels, width, height, shown, place) {
  const picture = new ImageData(new Uint8ClampedArray(width * height * 4).fill(128), width, height);
  const neighbors = (first, size) => [-1, 0, 1, 2].map((step) => Math.min(Math.max(first + step, 0), size - 1));
  for (let v = 0; v < height; v++) {
    for (let u = 0; u < shown; u++) {
      const [x, y] = place(u + 0.5, v + 0.5).map((at) => at - 0.5);
      const [left, top] = [Math.floor(x), Math.floor(y)];
      const [columns, rows] = [neighbors(left, pixels.width), neighbors(top, pixels.height)];
      const [across, down] = [cubic(x - left), cubic(y - top)];
      for (let channel = 0; channel < 3; channel++) {
        let sum = 0;
        for (let i = 0; i < 4; i++) {
          const row = rows[i] * pixels.width;
          for (let j = 0; j < 4; j++) sum += down[i] * across[j] * pixels.data[(row + columns[j]) * 4 + channel];
        }
        picture.data[(v * width + u) * 4 + channel] = sum;
      }
    }
  }
  return picture;
}

/** Pixels as the models take them: blue, green, red, from -1 to 1. */
const tensorOf = (pixels) =>
  Tensor.fromImage(pixels, { tensorFormat: 'BGR', norm: { mean: 127.5, bias: -127.5 }, dataType: 'float32' });

async function run(session, pixels) {
  const feed = await tensorOf(pixels);
  const outputs = await session.run({ [session.inputNames[0]]: feed });
  return { feed, output: outputs[session.outputNames[0]] };
}

/** A line of an image, upright, `HEIGHT` high. */
function cut(pixels, line, width, turned) {
  const upended = isUpended(line);
  const [across, along] = upended ? [line.height, line.width] : [line.width, line.height];
  const shown = Math.min(width, Math.ceil((HEIGHT * across) / along));
  const angle = line.angle + (upended ? Math.PI / 2 : 0) + (turned ? Math.PI : 0);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return sampled(pixels, width, HEIGHT, shown, (u, v) => {
    const [a, b] = [(u / shown - 0.5) * across, (v / HEIGHT - 0.5) * along];
    return [line.x + a * cos - b * sin, line.y + a * sin + b * cos];
  });
}

/** True if the text runs from the bottom to the top, or from the top to the bottom. */
const isUpended = ({ width, height }) => height >= 1.5 * width;

/** Of each step the likeliest character; repetitions are one, and 0 is none. */
function decode({ data, dims: [, steps, classes] }, characters) {
  let [text, last, sum, count] = ['', 0, 0, 0];
  for (let step = 0; step < steps; step++) {
    const shares = data.subarray(step * classes, (step + 1) * classes);
    const best = shares.reduce((most, share, i) => (share > shares[most] ? i : most), 0);
    if (best !== 0 && best !== last) {
      text += characters[best - 1] ?? ' ';
      sum += shares[best];
      count++;
    }
    last = best;
  }
  return { text, score: count ? sum / count : 0 };
}

/**
 * Reads an image.
 *
 * @param image an ImageBitmap, or what else a canvas draws.
 * @returns lines with `text`, `score` and their rectangle; `ran`: what each model got and gave.
 */
export async function read(image, { detection, classification, recognition, characters }) {
  const pixels = pixelsOf(image);
  const ratio = LONGEST_SIDE / Math.max(image.width, image.height);
  const [columns, rows] = [image.width, image.height].map((side) => Math.max(32, Math.round((side * ratio) / 32) * 32));
  const [sx, sy] = [image.width / columns, image.height / rows];
  const found = await run(detection, sampled(pixels, columns, rows, columns, (u, v) => [u * sx, v * sy]));
  const ran = { detection: [found], classification: [], recognition: [] };
  const lines = [];
  for (const line of findLines(found.output.data, columns, rows)) {
    Object.assign(line, { x: line.x * sx, y: line.y * sy, width: line.width * sx, height: line.height * sy });
    const turned = await run(classification, cut(pixels, line, UPRIGHT_WIDTH, false));
    ran.classification.push(turned);
    const upsideDown = turned.output.data[1] > SURE_THAT_IT_IS_UPSIDE_DOWN;
    const ratio = isUpended(line) ? line.height / line.width : line.width / line.height;
    const result = await run(recognition, cut(pixels, line, Math.ceil((HEIGHT * ratio) / 8) * 8, upsideDown));
    ran.recognition.push(result);
    const read = decode(result.output, characters);
    if (read.score >= 0.5) lines.push({ ...line, ...read });
  }
  return { lines, ran };
}
