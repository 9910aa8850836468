// Video frames as tensors on the GPU, by external textures: no pixel goes through the CPU. Frames that the browser
// imports not so are copied to a texture. Loaded at the first frame.
// A file of its own (npm/sessions.mjs), which imports types only.
import type { invalid } from '../errors';
import type { formOf } from './image_tensors';
import type { checkSize } from './images';
import type { TensorConstructor, TensorFromVideoFrameOptions, TypedTensor, VideoFrameSource } from './tensor_types';

type ImageForm = ReturnType<typeof formOf>;

interface Frame extends Pick<ImageForm, 'planar' | 'channels'> {
  readonly source: VideoFrameSource;
  readonly width: number;
  readonly height: number;
}

type TextureKind = 'texture_external' | 'texture_2d<f32>';

const shader = (kind: TextureKind) => `
struct Settings { size: vec2u, channels: u32, planar: u32, color: vec4u, bias: vec4f, mean: vec4f }
@group(0) @binding(0) var frame: ${kind};
@group(0) @binding(1) var smooth_sampler: sampler;
@group(0) @binding(2) var<uniform> settings: Settings;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
  let size = settings.size;
  if (any(id.xy >= size)) { return; }
  let place = (vec2f(id.xy) + 0.5) / vec2f(size);
  let pixel = round(saturate(textureSampleBaseClampToEdge(frame, smooth_sampler, place)) * 255);
  let at = id.y * size.x + id.x;
  for (var k = 0u; k < settings.channels; k++) {
    let i = select(at * settings.channels + k, k * size.x * size.y + at, settings.planar == 1);
    y[i] = (pixel[settings.color[k]] + settings.bias[k]) / settings.mean[k];
  }
}`;
const WORKGROUP = 8;
const pipelines = new WeakMap<GPUDevice, { [kind in TextureKind]?: Promise<GPUComputePipeline> }>();

function pipelineFor(device: GPUDevice, kind: TextureKind): Promise<GPUComputePipeline> {
  const made = pipelines.get(device) ?? {};
  pipelines.set(device, made);
  made[kind] ??= device.createComputePipelineAsync({
    layout: 'auto',
    compute: { module: device.createShaderModule({ code: shader(kind) }) },
  });
  return made[kind];
}

function settingsOf(device: GPUDevice, { width, height, planar, channels }: Frame): GPUBuffer {
  const words = new Uint32Array(16);
  words.set([width, height, channels.length, Number(planar), ...channels.map(({ color }) => color)]);
  const floats = new Float32Array(words.buffer);
  floats.set(
    channels.map(({ bias }) => bias),
    8,
  );
  floats.set(
    channels.map(({ mean }) => mean),
    12,
  );
  const buffer = device.createBuffer({
    size: words.byteLength,
    usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
  });
  device.queue.writeBuffer(buffer, 0, words);
  return buffer;
}

/** The frame's elements in a buffer. */
async function elementsOf(device: GPUDevice, frame: Frame): Promise<GPUBuffer> {
  const source = frame.source as VideoFrame | HTMLVideoElement;
  const pipeline = await pipelineFor(device, 'texture_external');
  let external: GPUExternalTexture;
  try {
    // Good for this task only: it is submitted before anything is awaited.
    external = device.importExternalTexture({ source });
  } catch {
    return copied(device, await createImageBitmap(source), frame);
  }
  return submitted(device, pipeline, external, frame);
}

async function copied(device: GPUDevice, bitmap: ImageBitmap, frame: Frame): Promise<GPUBuffer> {
  const pipeline = await pipelineFor(device, 'texture_2d<f32>');
  const { COPY_DST, RENDER_ATTACHMENT, TEXTURE_BINDING } = GPUTextureUsage;
  const size = [bitmap.width, bitmap.height];
  const usage = COPY_DST | RENDER_ATTACHMENT | TEXTURE_BINDING;
  const texture = device.createTexture({ size, format: 'rgba8unorm', usage });
  device.queue.copyExternalImageToTexture({ source: bitmap }, { texture }, size);
  const buffer = submitted(device, pipeline, texture.createView(), frame);
  texture.destroy();
  bitmap.close();
  return buffer;
}

function submitted(
  device: GPUDevice,
  pipeline: GPUComputePipeline,
  texture: GPUExternalTexture | GPUTextureView,
  frame: Frame,
): GPUBuffer {
  const { width, height, channels } = frame;
  const settings = settingsOf(device, frame);
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  const size = Math.ceil((channels.length * width * height) / 4) * 16;
  const buffer = device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
  const sampler = device.createSampler({ magFilter: 'linear', minFilter: 'linear' });
  const resources = [texture, sampler, { buffer: settings }, { buffer }];
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: resources.map((resource, binding) => ({ binding, resource })),
    }),
  );
  pass.dispatchWorkgroups(Math.ceil(width / WORKGROUP), Math.ceil(height / WORKGROUP));
  pass.end();
  device.queue.submit([encoder.finish()]);
  settings.destroy();
  return buffer;
}

async function download(device: GPUDevice, buffer: GPUBuffer, count: number): Promise<Float32Array> {
  const { COPY_DST, MAP_READ } = GPUBufferUsage;
  const copy = device.createBuffer({ size: buffer.size, usage: COPY_DST | MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  const elements = new Float32Array(copy.getMappedRange().slice(0, 4 * count));
  copy.destroy();
  return elements;
}

/** By the browser's canvas. */
async function drawn(Tensor: TensorConstructor, source: VideoFrameSource, options: TensorFromVideoFrameOptions) {
  const bitmap = await createImageBitmap(source as VideoFrame | HTMLVideoElement);
  try {
    return await Tensor.fromImage(bitmap, options);
  } finally {
    bitmap.close();
  }
}

/** The parts of the API that are loaded already. */
interface Loaded {
  readonly Tensor: TensorConstructor;
  readonly checkSize: typeof checkSize;
  readonly invalid: typeof invalid;
}

/** See `Tensor.fromVideoFrame`. */
export async function fromVideoFrame(
  { Tensor, checkSize, invalid }: Loaded,
  { planar, type, channels }: ImageForm,
  sessions: { readonly device: Promise<GPUDevice> },
  source: VideoFrameSource,
  options: TensorFromVideoFrameOptions,
): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>> {
  if (typeof source !== 'object' || !source || !('displayWidth' in source || 'videoWidth' in source))
    throw invalid('fromVideoFrame takes a VideoFrame or a <video>');
  const device = (options.device as GPUDevice | undefined) ?? (await sessions.device.catch(() => undefined));
  if (type !== 'float32' || typeof device?.importExternalTexture !== 'function') return drawn(Tensor, source, options);
  const [ownWidth, ownHeight] =
    'videoWidth' in source ? [source.videoWidth, source.videoHeight] : [source.displayWidth, source.displayHeight];
  if (!ownWidth || !ownHeight)
    throw invalid(
      `a frame of ${ownWidth} x ${ownHeight} pixels has no elements: was it closed, or has no video loaded?`,
    );
  const { resizedWidth: width = ownWidth, resizedHeight: height = ownHeight } = options;
  checkSize(width, height);
  const most = Math.floor(Math.min(device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize) / 16);
  if (channels.length * width * height > 4 * most)
    throw invalid(
      `a tensor of ${width} x ${height} pixels in ${channels.length} channels is larger than the ${16 * most} bytes ` +
        'that this device has for a buffer: give a smaller resizedWidth and resizedHeight',
    );
  const buffer = await elementsOf(device, { source, width, height, planar, channels });
  const dims = planar ? [1, channels.length, height, width] : [1, height, width, channels.length];
  return Tensor.fromGpuBuffer<'float32'>(buffer, {
    dims,
    download: () => download(device, buffer, channels.length * width * height),
    dispose: () => buffer.destroy(),
  });
}
