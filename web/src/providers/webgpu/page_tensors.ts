// Tensors that a session of this thread left on the GPU.
import type { DType } from '../../schema';
import { cpuElementSize, elementCount } from '../../contract/elements';
import { storageBytes } from '../../device/memory_plan';
import { PageForm, pageBytes } from './page_form';
import type { GpuProvider } from './provider';
import { invalid } from '../../errors';
import { HERE, type Loan, type TensorKeeper } from '../../device/keeper';

export class GpuPageTensors implements TensorKeeper {
  readonly thread = HERE;
  readonly location = 'gpu-buffer';
  /**
   * The page's buffers of tensors whose elements have another form there. From then on the page's buffer is the tensor.
   */
  private readonly given = new Map<number, GPUBuffer>();

  constructor(private readonly provider: GpuProvider) {}

  async download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array> {
    const { gpu } = this.provider;
    gpu.ensureAlive();
    this.takeBack(gpuId, dtype, dims);
    const bytes = await this.provider.read(gpuId, elementCount(dims) * gpu.elements.size(dtype));
    return gpu.elements.narrow(dtype, bytes);
  }

  free(gpuId: number): void {
    this.given.get(gpuId)?.destroy();
    this.given.delete(gpuId);
    this.provider.buffers.free(gpuId);
  }

  resource(gpuId: number, dtype: DType, dims: readonly number[]): GPUBuffer {
    const { buffer } = this.provider.buffers.get(gpuId);
    const { gpu } = this.provider;
    const known = gpu.elements.same(dtype) ? buffer : this.given.get(gpuId);
    if (known) return known;
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    const size = storageBytes(pageBytes(dtype, dims));
    const made = gpu.createBuffer({ label: "a page's", size, usage: STORAGE | COPY_SRC | COPY_DST });
    this.given.set(gpuId, made);
    this.giveAgain(gpuId, dtype, dims);
    return made;
  }

  use(gpuId: number, dtype: DType, dims: readonly number[], written: boolean): Pick<Loan, 'deliver'> {
    if (written) return { deliver: () => this.giveAgain(gpuId, dtype, dims) };
    this.takeBack(gpuId, dtype, dims);
    return {};
  }

  lend(given: GPUBuffer, dtype: DType, dims: readonly number[], written: boolean, what: string): Loan {
    const { gpu, buffers, caches } = this.provider;
    checkBuffer(what, given, pageBytes(dtype, dims));
    const bytes = storageBytes(elementCount(dims) * gpu.elements.size(dtype));
    if (gpu.elements.same(dtype) && isUsable(given, bytes)) {
      const gpuId = buffers.lend(given);
      return { gpuId, giveBack: () => buffers.giveBack(gpuId) };
    }
    const gpuId = buffers.allocate(bytes, caches.storage, what);
    const { buffer } = buffers.get(gpuId);
    const form = PageForm.of(gpu);
    if (!written) form.take(given, buffer, dtype, dims);
    const deliver = written ? () => form.give(buffer, given, dtype, dims) : undefined;
    return { gpuId, deliver, giveBack: () => buffers.free(gpuId) };
  }

  async fetch(given: GPUBuffer, dtype: DType, dims: readonly number[], what: string): Promise<Uint8Array> {
    const bytes = pageBytes(dtype, dims);
    checkBuffer(what, given, bytes);
    const { gpu, buffers, caches } = this.provider;
    const gpuId = buffers.allocate(storageBytes(bytes), caches.storage, what);
    try {
      PageForm.of(gpu).copy(given, buffers.get(gpuId).buffer, bytes);
      return await this.provider.read(gpuId, elementCount(dims) * cpuElementSize(dtype)!);
    } finally {
      buffers.free(gpuId);
    }
  }

  /** The page may have written to its buffer. */
  private takeBack(gpuId: number, dtype: DType, dims: readonly number[]): void {
    const given = this.given.get(gpuId);
    const { gpu, buffers } = this.provider;
    if (given) PageForm.of(gpu).take(given, buffers.get(gpuId).buffer, dtype, dims);
  }

  private giveAgain(gpuId: number, dtype: DType, dims: readonly number[]): void {
    const given = this.given.get(gpuId);
    const { gpu, buffers } = this.provider;
    if (given) PageForm.of(gpu).give(buffers.get(gpuId).buffer, given, dtype, dims);
  }
}

function checkBuffer(what: string, { size, usage }: GPUBuffer, bytes: number): void {
  if (!(usage & GPUBufferUsage.STORAGE)) throw invalid(`${what}: its buffer lacks the usage STORAGE`);
  if (size < bytes) throw invalid(`${what} needs a buffer of ${bytes} bytes; this one has ${size}`);
}

/** True if a session can use a buffer in place: it reads and writes in steps of 16 bytes, and copies. */
function isUsable({ size, usage }: GPUBuffer, bytes: number): boolean {
  const { COPY_SRC, COPY_DST } = GPUBufferUsage;
  return size >= bytes && size % 16 === 0 && (usage & COPY_SRC) > 0 && (usage & COPY_DST) > 0;
}
