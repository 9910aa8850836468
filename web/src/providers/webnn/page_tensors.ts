// Tensors that a session of this thread left on a context, and the page's own MLTensors.
import { elementCount, typeName } from '../../contract/elements';
import { HERE, type Loan, type TensorKeeper } from '../../device/keeper';
import { roundUp } from '../../device/memory_plan';
import { invalid } from '../../errors';
import type { DType } from '../../schema';
import type { MlDevice } from './device';
import { Block, blockAt } from './memory';
import { bytesOf, descriptorOf, hasMlType, type MlTensor } from './ml';

export class MlPageTensors implements TensorKeeper {
  readonly thread = HERE;
  readonly location = 'ml-tensor';
  readonly holds = hasMlType;
  private readonly lent = new WeakMap<MlTensor, Block>();

  constructor(private readonly device: MlDevice) {}

  async download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array> {
    this.device.ensureAlive();
    return this.device.read(gpuId, bytesOf(descriptorOf({ dtype, dims })));
  }

  free(gpuId: number): void {
    this.device.buffers.free(gpuId);
  }

  /** Uploads an output that the CPU computed; WebNN has no tensor without elements. */
  async settle(gpuId: number, dtype: DType, dims: readonly number[]): Promise<void> {
    const { buffer, offset } = blockAt(this.device.buffers.get(gpuId));
    if (buffer.holder(offset) || elementCount(dims) === 0) return;
    const descriptor = descriptorOf({ dtype, dims });
    try {
      const tensor = await this.device.tensor(descriptor);
      this.device.put(tensor, buffer.bytes(offset, bytesOf(descriptor)));
      buffer.take(offset, tensor);
    } catch (error) {
      throw await this.device.failure(error);
    }
  }

  resource(gpuId: number, dtype: DType, dims: readonly number[]): MlTensor {
    this.device.ensureAlive();
    const tensor = blockAt(this.device.buffers.get(gpuId)).buffer.show();
    if (tensor) return tensor;
    throw invalid(`${typeName(dtype)}[${dims}] has no elements, and WebNN no such tensors: await getData()`);
  }

  lend(tensor: MlTensor, dtype: DType, dims: readonly number[], _written: boolean, what: string): Loan {
    const wanted = descriptorOf({ dtype, dims });
    if (tensor.dataType !== wanted.dataType || `${tensor.shape}` !== `${dims}`) {
      const [has, needs] = [tensor, wanted].map(({ dataType, shape }) => `${dataType}[${shape}]`);
      throw invalid(`${what} needs an MLTensor of ${needs}, and this one is ${has}: create it like that, or say so`);
    }
    const { buffers } = this.device;
    const block = this.lent.get(tensor) ?? new Block(roundUp(bytesOf(tensor), 16), this.device, tensor);
    this.lent.set(tensor, block);
    block.lentAs = what;
    const gpuId = buffers.lend(block);
    return { gpuId, giveBack: () => buffers.giveBack(gpuId) };
  }
}
