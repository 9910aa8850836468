// The core's descriptions of tensors and containers, in uint32 words (abi.h).
import { type DType, type Location, ValueKind } from '../schema';

/** A tensor, as ort_run_output and the context of jsepRun describe it. */
export interface CoreTensor {
  readonly dtype: DType;
  readonly location: Location;
  /** An address, or a GPU buffer's id. */
  readonly data: number;
  readonly bytes: number;
  readonly dims: number[];
}

/** A sequence, or an optional with one item or none. */
export interface CoreContainer {
  readonly kind: ValueKind.sequence | ValueKind.optional;
  readonly items: readonly CoreOutput[];
}

/** Input `input` of a kernel; for one on the GPU, `data` is the address of the bytes to upload. */
export interface CoreInput {
  readonly kernel: number;
  readonly input: number;
  readonly tensor: CoreTensor;
}

export type CoreOutput = CoreTensor | CoreContainer;

/** Reads the core's uint32 words in order. */
export class WordReader {
  constructor(
    private readonly heap: Uint32Array,
    private position: number,
  ) {}

  next(): number {
    return this.heap[this.position++];
  }
  output(): CoreOutput {
    const kind: ValueKind = this.next();
    if (kind === ValueKind.tensor) return this.tensor();
    return { kind, items: Array.from({ length: this.next() }, () => this.output()) };
  }
  tensor(): CoreTensor {
    const [dtype, location, data, bytes, rank] = [this.next(), this.next(), this.next(), this.next(), this.next()];
    return { dtype, location, data, bytes, dims: Array.from({ length: rank }, () => this.next()) };
  }
}
