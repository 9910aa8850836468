// The cases of test_javascript_tensor.py: tensors of every type, in the page's own buffers, from images and back.
import { bufferOn, contents, ending, equal, fails, lasting, near } from './javascript_checks.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

const create = (name, options) =>
  lasting(InferenceSession.create(`${name}.pyort`, { executionProviders: ['webgpu', 'wasm'], ...options }));
const peer = async () => (await import('./onnxruntime_web.mjs')).Tensor;

/** Colors that differ in every channel; opaque by default, since canvases lose hidden colors. */
function picture(width, height, opaque = true) {
  const image = new ImageData(width, height);
  for (let i = 0; i < image.data.length; i++) image.data[i] = i % 4 === 3 && opaque ? 255 : (i * 37 + 11) % 256;
  return image;
}

function canvasOf(image) {
  const canvas = document.createElement('canvas');
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

async function elementOf(image) {
  const element = new Image();
  element.src = canvasOf(image).toDataURL();
  await element.decode();
  return element;
}

const pngOf = (image) => new Promise((resolve) => canvasOf(image).toBlob(resolve));

function same(ours, theirs) {
  equal([ours.type, ...ours.dims], [theirs.type, ...theirs.dims]);
  equal(ours.data, theirs.data);
}

const NORMS = [
  undefined,
  { mean: 1, bias: 0 },
  { mean: 127.5, bias: -127.5 },
  { mean: [1, 2, 3], bias: [10, 20, 30] },
  { mean: [1, 2, 3, 4], bias: [10, 20, 30, 40] },
];

/** Values c ? x : z of Where for each type: their form in a GPU buffer, and their numbers. */
const IN_BUFFERS = {
  float32: [Float32Array.of(1.5, -2, 3, -4, 5), [1.5, -2, 3, -4, 5]],
  float16: [Uint16Array.of(0x3c00, 0xc000, 0x4200, 0xc400, 0x4500), [1, -2, 3, -4, 5]],
  bfloat16: [Uint16Array.of(0x3f80, 0xc000, 0x4040, 0xc080, 0x40a0), [1, -2, 3, -4, 5]],
  int64: [BigInt64Array.of(1n, -2n, 2n ** 24n, -4n, 5n), [1, -2, 2 ** 24, -4, 5]],
  int32: [Int32Array.of(1, -2, 2 ** 24, -4, 5), [1, -2, 2 ** 24, -4, 5]],
  int16: [Int16Array.of(1, -2, 3, -32768, 5), [1, -2, 3, -32768, 5]],
  int8: [Int8Array.of(1, -2, 3, -128, 5), [1, -2, 3, -128, 5]],
  uint64: [BigUint64Array.of(1n, 2n, 2n ** 31n, 4n, 5n), [1, 2, 2 ** 31, 4, 5]],
  uint32: [Uint32Array.of(1, 2, 2 ** 31, 4, 5), [1, 2, 2 ** 31, 4, 5]],
  uint16: [Uint16Array.of(1, 2, 65535, 4, 5), [1, 2, 65535, 4, 5]],
  uint8: [Uint8Array.of(1, 2, 255, 4, 5), [1, 2, 255, 4, 5]],
  bool: [Uint8Array.of(1, 0, 1, 0, 1), [1, 0, 1, 0, 1]],
};

/** The bits of five elements of each type that only the CPU supports, and their numbers. */
const AS_BITS = {
  int4: [Int8Array.of(0x21, 0x43, 0x0f), [1, 2, 3, 4, -1]],
  uint4: [Uint8Array.of(0x21, 0x43, 0x0f), [1, 2, 3, 4, 15]],
  bfloat16: [Uint16Array.of(0x3f80, 0xc000, 0x4040, 0xc080, 0x40a0), [1, -2, 3, -4, 5]],
  float8e4m3fn: [Uint8Array.of(0x38, 0xc0, 0x44, 0xc8, 0), [1, -2, 3, -4, 0]],
  float8e5m2: [Uint8Array.of(0x3c, 0xc0, 0x42, 0xc4, 0), [1, -2, 3, -4, 0]],
};

export const cases = ending({
  'types, from the CPU and back': async () => {
    for (const [type, [bits, values]] of Object.entries(AS_BITS)) {
      for (const provider of ['webgpu', 'wasm']) {
        const session = await create(`read_${type}`, { executionProviders: [provider] });
        const { y, f } = await session.run({ x: new Tensor(type, bits, [5]) });
        equal([type, y.type, ...y.dims, y.size, y.data.constructor], [type, type, 5, 5, bits.constructor]);
        equal(y.data, bits);
        equal(f.data, values);
      }
    }
  },

  'float16, as a Float16Array and as bits': async () => {
    const halves = Float16Array.of(1, -2, 3, -4, 5);
    const session = await create('where_float16');
    const c = new Tensor('bool', [true, true, true, true, true]);
    const z = new Tensor('float16', [0, 0, 0, 0, 0]);
    for (const x of [halves, new Uint16Array(halves.buffer), [1, -2, 3, -4, 5]]) {
      const { y, f } = await session.run({ c, x: new Tensor('float16', x, [5]), z });
      equal([y.data.constructor.name, ...y.data], ['Float16Array', ...halves]);
      equal(f.data, [1, -2, 3, -4, 5]);
    }
    equal([new Tensor(halves).type], ['float16']);
  },

  'GPU buffers filled by hand, of every type': async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const on = (elements, type) => {
      // The bytes behind the elements belong to no tensor.
      const bytes = new Uint8Array(48).fill(0xa5);
      bytes.set(new Uint8Array(elements.buffer));
      return Tensor.fromGpuBuffer(bufferOn(device, bytes), { dataType: type, dims: [5] });
    };
    const picks = Uint8Array.of(1, 0, 1, 1, 0);
    const c = on(picks, 'bool');
    for (const [type, [x, values]] of Object.entries(IN_BUFFERS)) {
      const session = await create(`where_${type}`, { executionProviders: [{ name: 'webgpu', device }] });
      // The same elements in reverse.
      const [z, others] = [x.slice().reverse(), [...values].reverse()];
      const pick = (yes, no) => [...yes].map((value, i) => (picks[i] ? value : no[i]));
      const [yes, no, target] = [on(x, type), on(z, type), on(new Uint8Array(0), type)];
      const { f } = await session.run({ c, x: yes, z: no }, { y: target, f: null });
      equal([type, ...f.data], [type, ...pick(values, others)]);
      equal([type, ...(await contents(device, target.gpuBuffer, x.constructor, 5))], [type, ...pick(x, z)]);
      // The next run reads a tensor that one run wrote; and on the CPU it has the type's own array.
      const { y: own } = await session.run({ c, x: target, z: no });
      const asNumbers = type === 'bfloat16' ? pick(x, z) : pick(values, others);
      equal([own.type, ...own.data], [type, ...asNumbers]);
    }
  },

  "a session's own buffers, of every type": async () => {
    env.wasm.proxy = false;
    for (const [type, [x]] of Object.entries(IN_BUFFERS)) {
      const session = await create(`where_${type}`, { preferredOutputLocation: { y: 'gpu-buffer' } });
      const feeds = { c: new Tensor([true, true, true, true, true]), x: new Tensor(type, x) };
      const { y, f } = await session.run({ ...feeds, z: feeds.x });
      equal([y.location, y.gpuBuffer instanceof GPUBuffer], ['gpu-buffer', true]);
      const { f: again } = await session.run({ ...feeds, x: y, z: y });
      equal(again.data, f.data);
      equal(await y.getData(true), feeds.x.data);
    }
  },

  'textures, read by their own context': async () => {
    const gl = new OffscreenCanvas(1, 1).getContext('webgl2');
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 1, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, Uint8Array.of(0, 51, 102, 255));
    const download = async () => {
      gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
      const bytes = new Uint8Array(4);
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
      return Float32Array.from(bytes, (byte) => byte / 255);
    };
    const session = await create('where_float32');
    const tensor = Tensor.fromTexture(texture, { width: 1, height: 1, download });
    equal([tensor.location, ...tensor.dims], ['texture', 1, 1, 1, 4]);
    await fails(() => session.run({ c: tensor, x: tensor, z: tensor }), 'in a texture: await getData');
    near(await tensor.getData(), [0, 0.2, 0.4, 1], 1e-6);
  },

  "pixels as onnxruntime-web's": async () => {
    const Theirs = await peer();
    const image = picture(5, 4);
    same(await Tensor.fromImage(image), await Theirs.fromImage(image));
    const bitmap = await createImageBitmap(image);
    const url = canvasOf(image).toDataURL();
    for (const tensorFormat of [undefined, 'RGB', 'RGBA', 'BGR', 'RBG']) {
      for (const norm of NORMS) {
        // It writes into its argument.
        const options = () => ({ ...(tensorFormat && { tensorFormat }), ...(norm && { norm }) });
        for (const source of [image, bitmap, url])
          same(await Tensor.fromImage(source, options()), await Theirs.fromImage(source, options()));
      }
    }
    const element = await elementOf(image);
    same(await Tensor.fromImage(element), await Theirs.fromImage(element));
    same(await Tensor.fromImage(element, { norm: NORMS[4] }), await Theirs.fromImage(element, { norm: NORMS[4] }));
    const glass = picture(5, 4, false);
    same(await Tensor.fromImage(glass), await Theirs.fromImage(glass));
  },

  "images of tensors as onnxruntime-web's": async () => {
    const Theirs = await peer();
    for (const format of [undefined, 'RGB', 'RGBA']) {
      const channels = format?.length ?? 3;
      for (const norm of NORMS) {
        const data = Float32Array.from({ length: channels * 20 }, (_, i) => ((i * 37 + 11) % 300) / 255 - 0.1);
        const dims = [1, channels, 4, 5];
        const options = format && { format, ...(norm && { norm }) };
        const [ours, theirs] = [Tensor, Theirs].map((Class) => new Class('float32', data, dims).toImageData(options));
        equal([ours.width, ours.height], [theirs.width, theirs.height]);
        equal(ours.data, theirs.data);
      }
    }
    const image = picture(5, 4);
    const pixels = async (url) => (await Tensor.fromImage(url, { norm: { mean: 1, bias: 0 } })).data;
    const [ours, theirs] = await Promise.all([Tensor, Theirs].map((Class) => Class.fromImage(image)));
    near(await pixels(ours.toDataURL()), await pixels(theirs.toDataURL()), 0);
  },

  'images there and back': async () => {
    const image = picture(5, 4);
    for (const format of ['RGB', 'RGBA', 'BGR', 'RBG']) {
      for (const tensorLayout of ['NCHW', 'NHWC']) {
        for (const dataType of ['float32', 'uint8']) {
          const tensor = await Tensor.fromImage(image, { tensorFormat: format, tensorLayout, dataType });
          const shape = tensorLayout === 'NCHW' ? [1, format.length, 4, 5] : [1, 4, 5, format.length];
          equal([tensor.type, ...tensor.dims], [dataType, ...shape]);
          equal(tensor.toImageData({ format, tensorLayout }).data, image.data);
          equal(
            (await Tensor.fromImage(tensor.toDataURL({ format, tensorLayout }), { dataType: 'uint8' })).data,
            (await Tensor.fromImage(image, { dataType: 'uint8' })).data,
          );
        }
      }
    }
    const [planes, pixels] = [await Tensor.fromImage(image), await Tensor.fromImage(image, { tensorLayout: 'NHWC' })];
    const turned = planes.data.map((_, i) => planes.data[(i % 3) * 20 + Math.floor(i / 3)]);
    equal(pixels.data, turned);
    const rounded = await Tensor.fromImage(image, { dataType: 'uint8', norm: { bias: -20, mean: 0.7 } });
    const clamped = (pixel) => Uint8ClampedArray.of((pixel - 20) / 0.7)[0];
    for (let i = 0; i < 20; i++) equal([i, rounded.data[i]], [i, clamped(image.data[4 * i])]);
    const halves = new Tensor('float16', Float16Array.from(planes.data), [1, 3, 4, 5]);
    near(halves.toImageData().data, image.data, 0.5);
  },

  'what shows an image': async () => {
    const image = picture(6, 4);
    const canvas = canvasOf(image);
    const offscreen = new OffscreenCanvas(6, 4);
    offscreen.getContext('2d').putImageData(image, 0, 0);
    const png = await pngOf(image);
    const url = URL.createObjectURL(png);
    const expected = await Tensor.fromImage(image, { tensorFormat: 'RGB' });
    const shown = [await createImageBitmap(png), await elementOf(image)];
    for (const source of [canvas, offscreen, png, url, new URL(url), ...shown])
      same(await Tensor.fromImage(source, { tensorFormat: 'RGB' }), expected);
    const video = document.createElement('video');
    video.muted = true;
    const color = new Uint8ClampedArray(64 * 64 * 4).map((_, i) => [200, 100, 50, 255][i % 4]);
    video.srcObject = canvasOf(new ImageData(color, 64)).captureStream(30);
    await video.play();
    const frame = await Tensor.fromImage(video, { dataType: 'uint8', tensorLayout: 'NHWC' });
    equal(frame.dims, [1, 64, 64, 3]);
    near(frame.data.slice(0, 3), [200, 100, 50], 6);
  },

  'scaled images': async () => {
    // Left black, right white.
    const colors = new Uint8ClampedArray(16 * 8 * 4).map((_, i) => (i % 4 === 3 || (i >> 2) % 16 > 7 ? 255 : 0));
    const image = new ImageData(colors, 16);
    for (const source of [image, canvasOf(image), await createImageBitmap(image), canvasOf(image).toDataURL()]) {
      const tensor = await Tensor.fromImage(source, { resizedWidth: 4, resizedHeight: 2, tensorFormat: 'RGB' });
      equal(tensor.dims, [1, 3, 2, 4]);
      near([tensor.data[0], tensor.data[3]], [0, 1], 0.01);
      equal((await Tensor.fromImage(source, { resizedWidth: 4 })).dims, [1, 3, 8, 4]);
    }
  },

  'images that are none': async () => {
    const image = picture(2, 2);
    await fails(() => Tensor.fromImage(7), 'fromImage takes ImageData');
    await fails(() => Tensor.fromImage('javascript_tensor.mjs'), 'no image that this browser can load');
    await fails(() => Tensor.fromImage(new Blob(['a'])), 'a Blob is no image');
    await fails(() => Tensor.fromImage(document.createElement('video')), 'an image of 0 x 0 pixels');
    await fails(
      () => Tensor.fromImage(image, { resizedWidth: 2 ** 30 }),
      'an image of 1073741824 x 2 pixels cannot be',
    );
    await fails(() => Tensor.fromImage(image, { resizedWidth: 1.5 }), 'whole numbers of pixels, not 1.5 x 2');
    await fails(() => Tensor.fromImage(image, { tensorFormat: 'GBR' }), 'tensorFormat is one of RGB, RGBA, BGR, RBG');
    await fails(() => Tensor.fromImage(image, { norm: { mean: [1, 2] } }), 'an array of 3 or 4: it has 2');
    const tensor = await Tensor.fromImage(image);
    await fails(() => tensor.toImageData({ format: 'RGBA' }), 'a tensor .N, 4, H, W., not .1,3,2,2.');
    await fails(() => tensor.reshape([12]).toImageData(), 'not .12.');
    await fails(() => new Tensor('string', Array(12).fill('a'), [1, 3, 2, 2]).toImageData(), 'of string');
  },
});
