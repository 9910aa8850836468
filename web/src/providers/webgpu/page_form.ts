// Elements in buffers that a page shares with its sessions have the CPU's form, as in onnxruntime-web: int64 and uint64
// in eight bytes, bool in one. Shaders read 32 bits of each: differing elements are converted at the border, on the
// GPU, in the order of the queue. The same is done with buffers that a shader cannot bind directly.
import { DType } from '../../schema';
import { cpuElementSize, elementCount } from '../../contract/elements';
import type { Gpu } from './device';

/** WGSL of the i-th word of y, made from the words of x. */
const WORDS = {
  copied: 'x[i]',
  /** From the page: the lower halves; a byte each. */
  lower: 'x[2u * i]',
  ofBytes: 'select(0u, 1u, ((x[i >> 2u] >> (8u * (i & 3u))) & 0xffu) != 0u)',
  /** To the page. */
  signed: 'select(x[i >> 1u], u32(i32(x[i >> 1u]) >> 31u), (i & 1u) == 1u)',
  unsigned: 'select(x[i >> 1u], 0u, (i & 1u) == 1u)',
  bytes: 'byte(4u * i) | (byte(4u * i + 1u) << 8u) | (byte(4u * i + 2u) << 16u) | (byte(4u * i + 3u) << 24u)',
} as const;
type Way = keyof typeof WORDS;

const FROM_PAGE: { readonly [dtype: number]: Way } = {
  [DType.int64]: 'lower',
  [DType.uint64]: 'lower',
  [DType.bool_]: 'ofBytes',
};
const TO_PAGE: { readonly [dtype: number]: Way } = {
  [DType.int64]: 'signed',
  [DType.uint64]: 'unsigned',
  [DType.bool_]: 'bytes',
};

const THREADS = 64;
/** Parts of large tensors begin at multiples of this number of elements: at multiples of 256 bytes in any form. */
const STEP = 1024;

/** Bytes of a tensor in a page's buffer: whole words, as bindings require. */
export function pageBytes(dtype: DType, dims: readonly number[]): number {
  return Math.ceil((elementCount(dims) * cpuElementSize(dtype)!) / 4) * 4;
}

/** Conversions on one device. */
export class PageForm {
  private static readonly ofDevices = new WeakMap<Gpu, PageForm>();
  private readonly pipelines = new Map<Way, GPUComputePipeline>();

  private constructor(private readonly gpu: Gpu) {}

  static of(gpu: Gpu): PageForm {
    const known = PageForm.ofDevices.get(gpu) ?? new PageForm(gpu);
    PageForm.ofDevices.set(gpu, known);
    return known;
  }

  /** From a page's buffer into a session's. */
  take(from: GPUBuffer, into: GPUBuffer, dtype: DType, dims: readonly number[]): void {
    this.convert(FROM_PAGE[dtype] ?? 'copied', from, cpuElementSize(dtype)!, into, this.gpu.elements.size(dtype), dims);
  }

  /** The reverse. */
  give(from: GPUBuffer, into: GPUBuffer, dtype: DType, dims: readonly number[]): void {
    this.convert(TO_PAGE[dtype] ?? 'copied', from, this.gpu.elements.size(dtype), into, cpuElementSize(dtype)!, dims);
  }

  /** Copies bytes, a multiple of four, unchanged. */
  copy(from: GPUBuffer, into: GPUBuffer, bytes: number): void {
    this.convert('copied', from, 4, into, 4, [bytes / 4]);
  }

  private convert(
    way: Way,
    from: GPUBuffer,
    fromSize: number,
    into: GPUBuffer,
    intoSize: number,
    dims: readonly number[],
  ): void {
    const { device, traits } = this.gpu;
    const count = elementCount(dims);
    if (count === 0) return;
    const most = Math.floor(traits.maxStorageBindingSize / Math.max(fromSize, intoSize) / STEP) * STEP;
    const pipeline = this.pipeline(way);
    const layout = pipeline.getBindGroupLayout(0);
    const encoder = device.createCommandEncoder({ label: 'page form' });
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let start = 0; start < count; start += most) {
      const here = Math.min(most, count - start);
      const part = (buffer: GPUBuffer, each: number) => ({
        buffer,
        offset: start * each,
        size: Math.ceil((here * each) / 4) * 4,
      });
      const [x, y] = [part(from, fromSize), part(into, intoSize)];
      const entries = [
        { binding: 0, resource: x },
        { binding: 1, resource: y },
      ];
      pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
      const groups = Math.ceil(y.size / 4 / THREADS);
      const columns = Math.min(groups, traits.maxWorkgroupsPerDimension);
      pass.dispatchWorkgroups(columns, Math.ceil(groups / columns));
    }
    pass.end();
    this.gpu.submit([encoder.finish()]);
  }

  private pipeline(way: Way): GPUComputePipeline {
    const known = this.pipelines.get(way);
    if (known) return known;
    const { device } = this.gpu;
    const code = `
      @group(0) @binding(0) var<storage, read> x: array<u32>;
      @group(0) @binding(1) var<storage, read_write> y: array<u32>;
      fn byte(i: u32) -> u32 { return select(0u, min(x[min(i, arrayLength(&x) - 1u)], 1u), i < arrayLength(&x)); }
      @compute @workgroup_size(${THREADS})
      fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
        let i = id.y * groups.x * ${THREADS}u + id.x;
        if (i < arrayLength(&y)) { y[i] = ${WORDS[way]}; }
      }`;
    const label = `page form: ${way}`;
    const module = device.createShaderModule({ label, code });
    const made = device.createComputePipeline({ label, layout: 'auto', compute: { module, entryPoint: 'main' } });
    this.pipelines.set(way, made);
    return made;
  }
}
