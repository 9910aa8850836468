// A session on a WebNN context. A node adds a command, which says what it puts into a graph; all commands of a segment
// are one graph.
import type { Attributes } from '../../contract/attributes';
import { dtypeOf, elementCount } from '../../contract/elements';
import type { DTypeName } from '../../contract/kernel';
import { Arena } from '../../device/arena';
import { type Blocks, copiesOf } from '../../device/blocks';
import type { CallInput, Host, Resolved } from '../../device/call';
import type { Command } from '../../device/commands';
import type { Placement } from '../../device/memory';
import { storageBytes } from '../../device/memory_plan';
import { errorsAtOnce, type RunErrors, type SessionMemory, type Submission } from '../../device/provider';
import { type DeviceKernel, DeviceSession } from '../../device/session';
import { messageOf, RuntimeError } from '../../errors';
import { DType, ErrorCode } from '../../schema';
import type { MlDevice } from './device';
import { type MlProgram, MlSegment } from './graph';
import { bytesOf, type MlDataType, type MlDescriptor } from './ml';
import type { Call } from './operator';
import { findOperator } from './registry';
import { BOOL_AS, callOf, readsOf, shapesOf } from './trial';

type Instance = { readonly kernel: DeviceKernel; readonly attributes: unknown };

export class MlSession extends DeviceSession {
  declare readonly provider: MlDevice;
  readonly memory: SessionMemory;

  constructor(provider: MlDevice) {
    super(provider, true);
    const arena = new Arena(provider.memory, provider.limits.buffer);
    this.memory = { arena, tensors: provider.memory, bytes: 0, clear() {}, destroy: () => arena.destroy() };
  }

  findKernel(op: string, domain: string): DeviceKernel {
    const { types } = findOperator(op, domain);
    return { op, domain, types, attributes: (given: Attributes) => given } as DeviceKernel;
  }

  resolve(
    { kernel, attributes }: Instance,
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    host: Host,
  ): Resolved {
    const hostReads = new Set<number>();
    const call = callOf(attributes as Attributes | undefined, inputs, wants, (i) => hostReads.add(i));
    const operator = findOperator(kernel.op, kernel.domain ?? '');
    const emit = operator.emit(call);
    const read = readsOf(call);
    const made = this.shapes(kernel.op, emit, read);
    const outputs = made.map(({ shape, dataType }, i) => {
      const dtype = operator.result?.(call) ?? resultOf(call, dataType);
      const bytes = storageBytes(elementCount(shape) * this.provider.elements.size(dtype));
      return { id: wants[i] === false ? -1 : host.output(i, dtype, [...shape], bytes), bytes, descriptor: made[i] };
    });
    const program: MlProgram = {
      key: kernel.op,
      label: kernel.op,
      ready: true,
      compile: async () => undefined,
      emit,
      read,
      made: outputs.map(({ id }) => id),
    };
    const bindings = [
      ...read.flatMap((one) => (one ? [{ id: one.id, bytes: storageBytes(bytesOf(one.descriptor)) }] : [])),
      ...outputs.flatMap(({ id, bytes }) => (id < 0 ? [] : [{ id, bytes }])),
    ];
    const written = outputs.filter(({ id }) => id >= 0).length;
    const command = { kind: 'dispatch' as const, program, bindings, written, uniforms: undefined };
    return { commands: [{ ...command, workgroups: [1, 1, 1] }], hostReads, hostTests: [] };
  }

  private shapes(op: string, emit: MlProgram['emit'], read: MlProgram['read']): readonly MlDescriptor[] {
    try {
      return shapesOf(this.provider.context, emit, read);
    } catch (error) {
      this.provider.ensureAlive();
      if (error instanceof RuntimeError) throw error;
      throw new RuntimeError(ErrorCode.not_implemented, `WebNN takes no ${op} like this: ${messageOf(error)}`);
    }
  }

  copyBlocks(blocks: Blocks): readonly Command[] {
    return copiesOf(blocks);
  }

  asPlanned(commands: readonly Command[]): Command[] {
    return [...commands];
  }

  build(
    commands: readonly Command[],
    placeOf: (id: number) => Placement,
    _once?: ReadonlySet<number>,
    outside?: ReadonlySet<number>,
  ): MlSegment {
    return new MlSegment(this.provider, commands as Command<MlProgram>[], placeOf, outside);
  }

  submit({ segment, keep, read }: Submission) {
    this.provider.counters.submits++;
    const parts = (segment as MlSegment).run(keep, read);
    return { pending: { finish: async <T>(use: (parts: Uint8Array[]) => T) => use(await parts) } };
  }

  errors(): RunErrors {
    return errorsAtOnce(this.provider);
  }
}

/** What moves elements of bool makes bool. */
function resultOf({ inputs }: Call, dataType: MlDataType): DType {
  if (dataType === BOOL_AS && inputs.some((tensor) => tensor?.dtype === DType.bool_)) return DType.bool_;
  return dtypeOf(dataType as DTypeName);
}
