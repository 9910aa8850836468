// A device's best rates, measured by the shortest code possible: lower bounds for the time of any run.

/** Rates are per second. */
export interface DeviceRates {
  /** A submission of one tiny dispatch, and a download of four bytes of its result. */
  readonly roundTripMs: number;
  /** One more tiny dispatch, which waits for the previous one. */
  readonly launchMs: number;
  /** Multiplications and additions of float32. */
  readonly operations: number;
  /** Bytes read and written on the device. */
  readonly bytes: number;
  /** Bytes by writeBuffer, and by a mapped buffer. */
  readonly uploaded: number;
  readonly downloaded: number;
}

const SIZE = 32 << 20;
/** The least time to measure: clocks and schedulers then matter less. */
const ENOUGH_MS = 20;
const TRIES = 3;
const THREADS = 64;
const CHAINS = 12;
const STEPS = 4;
/** In one chain and turn: multiplications and additions of vec4s. */
const OPERATIONS = 8 * STEPS;
const GROUPS = { arithmetic: 4096, copy: SIZE / 16 / THREADS / 4 };

const chains = (text: (i: number) => string) => Array.from({ length: CHAINS }, (_, i) => text(i)).join(' ');
const TINY = `@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] += 1u; }`;
const ARITHMETIC = `@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> turns: array<u32>;
@compute @workgroup_size(${THREADS}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let a = vec4<f32>(0.999);
  ${chains((i) => `var s_${i} = vec4<f32>(f32(id.x + ${i}u));`)}
  let end = turns[0];
  for (var turn = 0u; turn < end; turn++) { ${Array(STEPS)
    .fill(chains((i) => `s_${i} = s_${i} * a + a;`))
    .join(' ')} }
  y[id.x % ${THREADS}u] = ${chains((i) => `${i ? '+ ' : ''}s_${i}`)};
}`;
/** Four vectors per thread, interleaved with those of its neighbors. */
const COPY = `@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@compute @workgroup_size(${THREADS}) fn main(@builtin(global_invocation_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>) {
  let all = groups.x * ${THREADS}u;
  ${[0, 1, 2, 3].map((i) => `y[id.x + ${i}u * all] = x[id.x + ${i}u * all];`).join(' ')}
}`;

/** The shortest of a few measurements, in ms. */
async function shortest(run: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < TRIES; i++) {
    const began = performance.now();
    await run();
    best = Math.min(best, performance.now() - began);
  }
  return best;
}

/** The time of one of many: `run(n)` with n doubled until it takes long enough, minus the time without any. */
async function each(run: (count: number) => Promise<unknown>, most: number): Promise<number> {
  await run(1); // compiles
  const none = await shortest(() => run(0));
  for (let count = 1; ; count *= 2) {
    const taken = (await shortest(() => run(count))) - none;
    if (taken >= ENOUGH_MS || count * 2 > most) return Math.max(taken, 0.001) / count;
  }
}

export async function openDevice(): Promise<GPUDevice> {
  const device = await (await navigator.gpu?.requestAdapter())?.requestDevice();
  if (!device) throw new Error('no adapter');
  return device;
}

/** Runs a tiny dispatch `count` times in one submission, and downloads four bytes of the result. */
export function tinyRuns(device: GPUDevice): (count: number) => Promise<void> {
  const pipeline = pipelineOf(device, TINY);
  const y = bufferOf(device, 16);
  const back = mappable(device, 16);
  const group = groupOf(device, pipeline, [y]);
  return async (count) => {
    device.queue.writeBuffer(y, 0, new Uint32Array(4));
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < count; i++) pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(y, 0, back, 0, 16);
    device.queue.submit([encoder.finish()]);
    await back.mapAsync(GPUMapMode.READ);
    back.unmap();
  };
}

export async function measureDevice(device: GPUDevice): Promise<DeviceRates> {
  const tiny = tinyRuns(device);
  const launchMs = await each(tiny, 1 << 14);
  const roundTripMs = await shortest(() => tiny(1));
  const arithmeticMs = await each(arithmetic(device), 1 << 16);
  const copyMs = await each(copies(device), 1 << 10);
  const { up, down } = transfers(device);
  const uploadMs = await each(up, 64);
  const downloadMs = await each(down, 64);
  const aSecond = (amount: number, ms: number) => (amount / ms) * 1000;
  return {
    roundTripMs,
    launchMs,
    operations: aSecond(GROUPS.arithmetic * THREADS * CHAINS * OPERATIONS, arithmeticMs),
    bytes: aSecond(2 * SIZE, copyMs),
    uploaded: aSecond(SIZE, uploadMs),
    downloaded: aSecond(SIZE, downloadMs),
  };
}

/** Runs arithmetic in registers. */
function arithmetic(device: GPUDevice): (count: number) => Promise<void> {
  const pipeline = pipelineOf(device, ARITHMETIC);
  const y = bufferOf(device, THREADS * 16);
  const turns = bufferOf(device, 16);
  const group = groupOf(device, pipeline, [y, turns]);
  return (count) => {
    device.queue.writeBuffer(turns, 0, new Uint32Array([count, 0, 0, 0]));
    return dispatched(device, pipeline, group, GROUPS.arithmetic, 1);
  };
}

function copies(device: GPUDevice): (count: number) => Promise<void> {
  const pipeline = pipelineOf(device, COPY);
  const group = groupOf(device, pipeline, [bufferOf(device, SIZE), bufferOf(device, SIZE)]);
  return (count) => dispatched(device, pipeline, group, GROUPS.copy, count);
}

function transfers(device: GPUDevice) {
  const there = bufferOf(device, SIZE);
  const back = mappable(device, SIZE);
  const bytes = new Uint8Array(SIZE);
  return {
    async up(count: number) {
      for (let i = 0; i < count; i++) device.queue.writeBuffer(there, 0, bytes);
      await device.queue.onSubmittedWorkDone();
    },
    async down(count: number) {
      for (let i = 0; i < count; i++) {
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(there, 0, back, 0, SIZE);
        device.queue.submit([encoder.finish()]);
        await back.mapAsync(GPUMapMode.READ);
        bytes.set(new Uint8Array(back.getMappedRange()));
        back.unmap();
      }
    },
  };
}

function dispatched(
  device: GPUDevice,
  pipeline: GPUComputePipeline,
  group: GPUBindGroup,
  workgroups: number,
  count: number,
): Promise<void> {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  for (let i = 0; i < count; i++) pass.dispatchWorkgroups(workgroups);
  pass.end();
  device.queue.submit([encoder.finish()]);
  return device.queue.onSubmittedWorkDone();
}

/** Bytes per second that this thread's CPU reads and writes. */
export async function measureCopies(): Promise<number> {
  const [from, to] = [new Uint8Array(SIZE).fill(1), new Uint8Array(SIZE)];
  const ms = await each(async (count) => {
    for (let i = 0; i < count; i++) to.set(from);
  }, 64);
  return (2 * SIZE * 1000) / ms;
}

function pipelineOf(device: GPUDevice, code: string): GPUComputePipeline {
  return device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code }) } });
}

function groupOf(device: GPUDevice, pipeline: GPUComputePipeline, buffers: readonly GPUBuffer[]): GPUBindGroup {
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  return device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
}

function bufferOf(device: GPUDevice, size: number): GPUBuffer {
  return device.createBuffer({
    size,
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
  });
}

function mappable(device: GPUDevice, size: number): GPUBuffer {
  return device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
}
