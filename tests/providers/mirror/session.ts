// A session on the mirror. Its commands run in order when they are submitted.
import { elementCount } from '../../../web/src/contract/elements';
import { Arena } from '../../../web/src/device/arena';
import { type Blocks, copiesOf } from '../../../web/src/device/blocks';
import type { CallInput, Host, Resolved } from '../../../web/src/device/call';
import type { Command, CompiledSegment, Program } from '../../../web/src/device/commands';
import type { Placement } from '../../../web/src/device/memory';
import { storageBytes } from '../../../web/src/device/memory_plan';
import { errorsAtOnce, type RunErrors, type SessionMemory, type Submission } from '../../../web/src/device/provider';
import { type DeviceKernel, DeviceSession } from '../../../web/src/device/session';
import { RuntimeError } from '../../../web/src/errors';
import { ErrorCode } from '../../../web/src/schema';
import type { MirrorDevice } from './device';
import { kernels, type MirrorKernel } from './kernels';
import { at } from './memory';

interface Work extends Program {
  run(places: readonly Uint8Array[]): void;
}

interface MirrorSegment extends CompiledSegment {
  readonly steps: readonly (() => void)[];
}

const floats = (bytes: Uint8Array, count: number) => new Float32Array(bytes.buffer, bytes.byteOffset, count);

export class MirrorSession extends DeviceSession {
  declare readonly provider: MirrorDevice;
  readonly memory: SessionMemory;

  constructor(provider: MirrorDevice) {
    super(provider, true);
    const arena = new Arena(provider.memory, provider.limits.buffer);
    this.memory = { arena, tensors: provider.memory, bytes: 0, clear() {}, destroy: () => arena.destroy() };
  }

  findKernel(op: string, domain: string): DeviceKernel {
    const found = domain === '' ? kernels.find((kernel) => kernel.op === op) : undefined;
    if (found) return found;
    const place = { opType: op, provider: this.provider.name };
    throw new RuntimeError(ErrorCode.not_implemented, `the mirror has no kernel for ${op}`, place);
  }

  resolve({ kernel }: { kernel: DeviceKernel }, inputs: readonly CallInput[], _: unknown, host: Host): Resolved {
    const { op, shape, run } = kernel as DeviceKernel & MirrorKernel;
    const tensors = inputs.map(({ tensor }) => tensor);
    const dims = tensors.map((tensor) => tensor.dims);
    const made = shape(dims);
    const size = elementCount(made);
    const id = host.output(0, tensors[0].dtype, made, storageBytes(size * 4));
    const bindings = [...tensors, { id, size }].map((one) => ({ id: one.id, bytes: storageBytes(one.size * 4) }));
    const program: Work = {
      key: `${op} ${dims.join(' ')}`,
      label: op,
      ready: true,
      compile: async () => undefined,
      run: (places) =>
        run(
          tensors.map((tensor, i) => floats(places[i], tensor.size)),
          floats(places[tensors.length], size),
          dims,
        ),
    };
    const command = { kind: 'dispatch' as const, program, bindings, written: 1, uniforms: undefined };
    return { commands: [{ ...command, workgroups: [1, 1, 1] }], hostReads: new Set(), hostTests: [] };
  }

  copyBlocks(blocks: Blocks): readonly Command[] {
    return copiesOf(blocks);
  }

  asPlanned(commands: readonly Command[]): Command[] {
    return [...commands];
  }

  build(commands: readonly Command[], placeOf: (id: number) => Placement): MirrorSegment {
    const bytesOf = ({ id, offset = 0, bytes }: { id: number; offset?: number; bytes: number }) => {
      const place = placeOf(id);
      return at({ ...place, offset: place.offset + offset }, bytes);
    };
    const steps = commands.map((command) => () => {
      if (command.kind === 'copy') return bytesOf(command.target).set(bytesOf(command.source));
      this.provider.counters.dispatches++;
      (command.program as Work).run(command.bindings.map(bytesOf));
    });
    return { steps, settled: false, refused: async () => undefined, destroy() {} };
  }

  submit({ segment, keep, read }: Submission) {
    this.provider.counters.submits++;
    for (const step of (segment as MirrorSegment).steps) step();
    for (const { source, target, bytes } of keep) at(target, bytes).set(at(source, bytes));
    const parts = read.map((place) => at(place, place.bytes).slice());
    return { pending: { finish: async <T>(use: (parts: Uint8Array[]) => T) => use(parts) } };
  }

  errors(): RunErrors {
    return errorsAtOnce(this.provider);
  }
}
