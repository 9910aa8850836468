// A session on a WebNN context. A node adds a command, which says what it puts into a graph; all commands of a segment
// are one graph.
import { Attributes } from '../../contract/attributes';
import { dtypeOf, elementCount, toNumbers } from '../../contract/elements';
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
import { Formula } from './formula';
import { type MlProgram, MlSegment } from './graph';
import { bytesOf, type MlDataType, type MlDescriptor, type MlOperand } from './ml';
import type { Call } from './operator';
import { findOperator } from './registry';

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
    const operator = findOperator(kernel.op, kernel.domain ?? '');
    const hostReads = new Set<number>();
    const call: Call = {
      attributes: (attributes as Attributes | undefined) ?? new Attributes({}),
      inputs: inputs.map((input) => input?.tensor),
      wants,
      data: (i) => {
        const input = inputs[i];
        if (!input?.bytes) return undefined;
        hostReads.add(i);
        return toNumbers(input.tensor.dtype, input.bytes);
      },
    };
    const emit = operator.emit(call);
    const given = call.inputs.map((tensor) => (tensor?.location === 'gpu' ? tensor : undefined));
    const read = given.map((tensor) => tensor && { id: tensor.id, descriptor: descriptorOf(tensor) });
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

  /** Types and shapes of what a node makes, as the browser has them. */
  private shapes(op: string, emit: MlProgram['emit'], read: MlProgram['read']): readonly MlDescriptor[] {
    try {
      const f = new Formula(this.provider.context);
      const operands = read.map((one, i) => one && f.builder.input(`i${i}`, one.descriptor));
      return [emit(f, operands as MlOperand[])].flat().map(({ dataType, shape }) => ({ dataType, shape }));
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

const BOOL = 'uint8';

export function descriptorOf({
  dtype,
  dims,
}: {
  readonly dtype: DType;
  readonly dims: readonly number[];
}): MlDescriptor {
  const dataType = dtype === DType.bool_ ? BOOL : (DType[dtype] as MlDataType);
  return { dataType, shape: dims };
}

/** What moves elements of bool makes bool. */
function resultOf({ inputs }: Call, dataType: MlDataType): DType {
  if (dataType === BOOL && inputs.some((tensor) => tensor?.dtype === DType.bool_)) return DType.bool_;
  return dtypeOf(dataType as DTypeName);
}
