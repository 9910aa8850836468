// A session on a WebNN context. A node adds a command, which defines its operators in a graph; all commands of a
// segment are one graph.
import type { Attributes } from '../../contract/attributes';
import { dtypeOf, elementCount } from '../../contract/elements';
import type { DTypeName } from '../../contract/kernel';
import { Arena } from '../../device/arena';
import { type Blocks, copiesOf } from '../../device/blocks';
import { FIRST_VIRTUAL_ID } from '../../device/buffers';
import type { CallInput, Host, Resolved } from '../../device/call';
import type { Command } from '../../device/commands';
import type { Placement } from '../../device/memory';
import { storageBytes } from '../../device/memory_plan';
import { errorsAtOnce, type RunErrors, type SessionMemory, type Submission } from '../../device/provider';
import { type DeviceKernel, DeviceSession } from '../../device/session';
import { messageOf, RuntimeError } from '../../errors';
import { DType, ErrorCode } from '../../schema';
import { Graphs, type MlProgram, Sketch } from './build';
import type { MlDevice } from './device';
import { MlSegment } from './graph';
import { bytesOf, type MlDataType, type MlDescriptor } from './ml';
import type { Call } from './operator';
import { findOperator } from './registry';
import { BOOL_AS, callOf, readsOf, shapesOf } from './trial';

type Instance = { readonly kernel: DeviceKernel; readonly attributes: unknown };

export class MlSession extends DeviceSession {
  declare readonly provider: MlDevice;
  readonly memory: SessionMemory;
  private readonly graphs: Graphs;
  /** Numbers of kernels, in the order of their first calls. */
  private readonly numbers = new Map<Instance, number>();

  constructor(provider: MlDevice) {
    super(provider, true);
    this.graphs = new Graphs(provider);
    const arena = new Arena(provider.memory, provider.limits.buffer);
    this.memory = { arena, tensors: provider.memory, bytes: 0, clear() {}, destroy: () => arena.destroy() };
  }

  findKernel(op: string, domain: string): DeviceKernel {
    const { types } = findOperator(op, domain);
    return { op, domain, types, attributes: (given: Attributes) => given } as DeviceKernel;
  }

  resolve(
    instance: Instance,
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    host: Host,
  ): Resolved {
    const { kernel, attributes } = instance;
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
      form: this.form(instance, inputs, wants, hostReads),
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

  /** See MlProgram. */
  private form(
    instance: Instance,
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    hostReads: ReadonlySet<number>,
  ): string {
    const number = this.numbers.get(instance) ?? this.numbers.size;
    this.numbers.set(instance, number);
    const given = inputs.map((input, i) => {
      if (!input) return '';
      const { dtype, dims, location } = input.tensor;
      return `${dtype}[${dims}]${location}${hostReads.has(i) ? `=${input.bytes}` : ''}`;
    });
    return `${number}: ${wants} ${given.join(' ')}`;
  }

  /** Types and shapes of a node's results, according to the browser. */
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
    once?: ReadonlySet<number>,
    outside?: ReadonlySet<number>,
  ): MlSegment {
    const programs = commands.map((command) => {
      if (command.kind === 'dispatch') return command.program as MlProgram;
      throw new RuntimeError(ErrorCode.not_implemented, 'Loop and Scan cannot take tensors of webnn apart yet');
    });
    const { buffers } = this.provider;
    const isWeight = (id: number) => id < FIRST_VIRTUAL_ID && buffers.get(id).constant === true;
    return new MlSegment(this.provider, this.graphs, new Sketch(programs, isWeight, outside, once), placeOf);
  }

  submit({ segment, keep, read }: Submission) {
    this.provider.counters.submits++;
    const parts = (segment as MlSegment).run(keep, read);
    // `finish` reports a failure.
    parts.catch(() => undefined);
    return { pending: { finish: async <T>(use: (parts: Uint8Array[]) => T) => use(await parts) } };
  }

  errors(): RunErrors {
    return errorsAtOnce(this.provider);
  }
}

/** Operators that move elements of bool return bool. */
function resultOf({ inputs }: Call, dataType: MlDataType): DType {
  if (dataType === BOOL_AS && inputs.some((tensor) => tensor?.dtype === DType.bool_)) return DType.bool_;
  return dtypeOf(dataType as DTypeName);
}
