// What the bridge could be at best: raw commands over a bare websocket. Query: port, token. See py_ort/bench/bridge.py.
import { downloadChunks } from '../wire/download';

const query = new URLSearchParams(self.location.search);
const FRAME = 1 << 20;
const socket = new WebSocket(`ws://127.0.0.1:${query.get('port')}/?token=${query.get('token')}`);
socket.binaryType = 'arraybuffer';

let device: Promise<() => Promise<void>> | undefined;

/** One tiny dispatch, and four bytes of it back. */
async function gpuRoundTrip(): Promise<() => Promise<void>> {
  const gpu = await (await navigator.gpu?.requestAdapter())?.requestDevice();
  if (!gpu) throw new Error('no adapter');
  const module = gpu.createShaderModule({
    code: `@group(0) @binding(0) var<storage, read_write> x: array<u32>;
      @compute @workgroup_size(1) fn main() { x[0] += 1u; }`,
  });
  const pipeline = gpu.createComputePipeline({ layout: 'auto', compute: { module } });
  const buffer = gpu.createBuffer({
    size: 16,
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
  });
  const back = gpu.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const group = gpu.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: { buffer } }],
  });
  return async () => {
    gpu.queue.writeBuffer(buffer, 0, new Uint32Array(4));
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(buffer, 0, back, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    await back.mapAsync(GPUMapMode.READ);
    back.unmap();
  };
}

const say = (text: string): void => socket.send(new TextEncoder().encode(text));

async function answer(text: string): Promise<void> {
  const [command, argument, size] = text.split(' ');
  if (command === 'send') {
    const bytes = new Uint8Array(Number(argument));
    for (let at = 0; at < bytes.byteLength; at += FRAME) socket.send(bytes.subarray(at, at + FRAME));
    return;
  }
  if (command === 'fetch') {
    const target = new Uint8Array(Number(size));
    await downloadChunks(argument!, target.byteLength, [{ start: 0, end: target.byteLength }], (offset, bytes) =>
      target.set(bytes, offset),
    );
  } else if (command === 'gpu') {
    await (await (device ??= gpuRoundTrip()))();
  }
  say(command!);
}

socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
  answer(new TextDecoder().decode(data)).catch((error: unknown) => say(`error ${String(error)}`));
});
socket.addEventListener('close', () => self.close());
