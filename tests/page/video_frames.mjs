// The cases of test_video_frames.py: frames of a video as tensors.
import { fails } from './javascript_checks.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

const canvas = new OffscreenCanvas(5, 3);
const context = canvas.getContext('2d');
for (let i = 0; i < 15; i++) {
  context.fillStyle = `rgb(${i * 17} ${255 - i * 11} ${(i * 73) % 256})`;
  context.fillRect(i % 5, Math.floor(i / 5), 1, 1);
}
const frame = new VideoFrame(canvas, { timestamp: 0 });
const drawn = async (options) => Tensor.fromImage(await createImageBitmap(frame), options);

function near(found, wanted, apart) {
  if (String(found.dims) !== String(wanted.dims)) throw new Error(`${found.dims}, not ${wanted.dims}`);
  found.data.forEach((value, i) => {
    if (!(Math.abs(value - wanted.data[i]) <= apart)) throw new Error(`${i}: ${value}, not ${wanted.data[i]}`);
  });
}

const cases = {
  async without_a_device() {
    const tensor = await Tensor.fromVideoFrame(frame);
    if (tensor.location !== 'cpu') throw new Error(tensor.location);
    near(tensor, await drawn(), 0);
  },
  async on_the_gpu(create) {
    const session = await create();
    const forms = [
      {},
      { tensorLayout: 'NHWC', tensorFormat: 'BGR', norm: { bias: [-1, -2, -3], mean: [2, 3, 4] } },
      { tensorFormat: 'RGBA', norm: { mean: 1 } },
    ];
    for (const form of forms) {
      const tensor = await Tensor.fromVideoFrame(frame, form);
      if (tensor.location !== 'gpu-buffer') throw new Error(tensor.location);
      await tensor.getData();
      near(tensor, await drawn(form), 1e-5);
    }
    const tensor = await Tensor.fromVideoFrame(frame);
    const { y } = await session.run({ x: tensor });
    const own = await drawn();
    near(y, { dims: own.dims, data: own.data.map((value) => 2 * value) }, 1e-5);
    tensor.dispose();
    if (tensor.location !== 'none') throw new Error(tensor.location);
    const device = await env.webgpu.device;
    const named = await Tensor.fromVideoFrame(frame, { device, resizedWidth: 10, resizedHeight: 2 });
    if (String(named.dims) !== '1,3,2,10') throw new Error(named.dims);
    const small = await Tensor.fromVideoFrame(frame, { dataType: 'uint8' });
    if (small.location !== 'cpu' || small.type !== 'uint8') throw new Error(small.location);
    await session.release();
  },
  async what_is_wrong(create) {
    const session = await create();
    await fails(() => Tensor.fromVideoFrame(frame, { tensorFormat: 'XYZ' }), 'tensorFormat is one of');
    for (const size of [0, -1, 1.5, NaN, Infinity, '4'])
      await fails(() => Tensor.fromVideoFrame(frame, { resizedWidth: size }), `whole numbers of pixels, not ${size} x`);
    await fails(() => Tensor.fromVideoFrame(frame, { resizedHeight: 0 }), 'whole numbers of pixels, not .* x 0');
    await fails(
      () => Tensor.fromVideoFrame(frame, { resizedWidth: 2 ** 30 }),
      'larger than the .* give a smaller resized',
    );
    for (const none of [3, null, new ImageData(1, 1)])
      await fails(() => Tensor.fromVideoFrame(none), 'takes a VideoFrame or a <video>');
    await fails(() => Tensor.fromVideoFrame(document.createElement('video')), 'a frame of 0 x 0 pixels');
    frame.close();
    await fails(() => Tensor.fromVideoFrame(frame), 'was it closed');
    await session.release();
  },
};

export async function run(name, proxy) {
  env.wasm.proxy = proxy;
  await cases[name](() => InferenceSession.create('m.pyort', { executionProviders: ['webgpu'] }));
}
