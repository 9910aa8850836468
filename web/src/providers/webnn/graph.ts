// A segment as one graph. It is built when its first run is given to the context, and kept.
import type { Command, CompiledSegment, Program } from '../../device/commands';
import { FIRST_VIRTUAL_ID } from '../../device/buffers';
import type { Placement } from '../../device/memory';
import type { Submission } from '../../device/provider';
import { messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import type { MlDevice } from './device';
import { Formula } from './formula';
import { blockAt, type Holder } from './memory';
import { bytesOf, type MlDescriptor, type MlGraph, type MlOperand, type MlTensor, NAME } from './ml';
import type { Emit } from './operator';
import type { Read } from './trial';

export interface MlProgram extends Program {
  readonly emit: Emit;
  /** Of inputs on the device, which tensors they are, as what the node reads them. */
  readonly read: readonly (Read | undefined)[];
  /** The tensors that it makes; -1: nobody reads it. */
  readonly made: readonly number[];
}

interface Port extends Holder {
  readonly name: string;
  readonly place: Placement;
  readonly descriptor: MlDescriptor;
}

/** A build that never ends must not end the page. */
const BUILD_MS = 60_000;

export class MlSegment implements CompiledSegment {
  settled = false;
  private graph: MlGraph | undefined;
  /** Nobody reads what it makes: there is no graph. */
  private idle = false;
  private readonly inputs: Port[] = [];
  private readonly outputs: Port[] = [];
  private destroyed = false;

  constructor(
    private readonly device: MlDevice,
    private readonly commands: readonly Command<MlProgram>[],
    private readonly placeOf: (id: number) => Placement,
    /** Of the tensors that it makes, those that are read from outside. */
    private readonly outside: ReadonlySet<number> | undefined,
  ) {
    if (commands.some(({ kind }) => kind === 'copy'))
      throw new RuntimeError(ErrorCode.not_implemented, 'Loop and Scan cannot take tensors of webnn apart yet');
  }

  /** Gives a run to the context; the parts that are read, when they are there. */
  run(keep: Submission['keep'], read: Submission['read']): Promise<Uint8Array[]> {
    const ready = (this.graph ?? this.idle) && this.outputs.every(({ tensor }) => tensor);
    // What was written may be written anew before the context is ready.
    const contents = this.inputs.map(({ place, descriptor }) => this.contentOf(place, descriptor));
    const work = () => this.give(contents, keep, read);
    const done = this.device.inOrder(() => (ready ? work() : this.prepare().then(work)));
    return Promise.resolve(done).then((parts) => Promise.all(parts));
  }

  private contentOf(place: Placement, { shape, dataType }: MlDescriptor): MlTensor | Uint8Array {
    const { buffer, offset } = blockAt(place);
    const tensor = buffer.holder(offset)?.tensor;
    if (tensor && tensor.dataType === dataType && `${tensor.shape}` === `${shape}`) return tensor;
    return buffer.bytes(offset, bytesOf({ shape, dataType }));
  }

  private give(
    contents: readonly (MlTensor | Uint8Array)[],
    keep: Submission['keep'],
    read: Submission['read'],
  ): (Promise<Uint8Array> | Uint8Array)[] {
    const { context, counters } = this.device;
    const inputs = this.inputs.map((port, i) => {
      const content = contents[i] ?? this.contentOf(port.place, port.descriptor);
      if (!(content instanceof Uint8Array)) return [port.name, content] as const;
      context.writeTensor(port.tensor!, content);
      return [port.name, port.tensor!] as const;
    });
    if (this.graph) {
      counters.dispatches++;
      context.dispatch(
        this.graph,
        Object.fromEntries(inputs),
        Object.fromEntries(this.outputs.map(({ name, tensor }) => [name, tensor!])),
      );
    }
    for (const port of this.outputs) blockAt(port.place).buffer.hold(port.place.offset, port);
    const parts = read.map((place) => this.device.readNow(place, place.bytes));
    for (const { source, target, bytes } of keep) this.keep(source, target, bytes);
    return parts;
  }

  /** The target has what the source has: an output's own tensor, or a copy. */
  private keep(source: Placement, target: Placement, bytes: number): void {
    const [from, to] = [blockAt(source), blockAt(target)];
    const holder = from.buffer.holder(from.offset);
    if (holder?.tensor && isPort(holder)) {
      to.buffer.take(to.offset, holder.tensor);
      holder.tensor = undefined;
    } else {
      const read = this.device.readNow(source, bytes);
      if (read instanceof Uint8Array) to.buffer.write(to.offset, read);
      else void this.device.inOrder(() => read.then((contents) => to.buffer.write(to.offset, contents)));
    }
  }

  private async prepare(): Promise<void> {
    if (!this.graph && !this.idle) await this.build();
    for (const port of [...this.inputs, ...this.outputs]) port.tensor ??= await this.device.tensor(port.descriptor);
  }

  private async build(): Promise<void> {
    const f = new Formula(this.device.context);
    const known = new Map<number, MlOperand>();
    for (const { program } of this.commands as readonly { readonly program: MlProgram }[]) {
      const x = program.read.map((one) => one && this.operand(f, known, one.id, one.descriptor));
      const made = [program.emit(f, x as MlOperand[])].flat();
      program.made.forEach((id, i) => known.set(id, made[i]));
    }
    const wanted = new Set(this.commands.flatMap((one) => (one as { program: MlProgram }).program.made));
    for (const id of wanted) {
      if (id < 0 || (this.outside && !this.outside.has(id))) continue;
      const { dataType, shape } = known.get(id)!;
      const port = { name: `o${id}`, place: this.placeOf(id), descriptor: { dataType, shape }, tensor: undefined };
      this.outputs.push(port);
    }
    this.idle = this.outputs.length === 0;
    if (this.idle) return;
    // What an operator made, an input or another output may be, too. Identity knows fewer types.
    const outputs = this.outputs.map(({ name, descriptor: { shape } }) => [
      name,
      f.plain('reshape', known.get(Number(name.slice(1)))!, [...shape]),
    ]);
    // A browser's graph knows no input that nothing of it reads.
    const read = f.reached(outputs.map(([, operand]) => operand as MlOperand));
    const unread = this.inputs.filter(({ name }) => !read.has(known.get(Number(name.slice(1)))!));
    for (const port of unread) this.inputs.splice(this.inputs.indexOf(port), 1);
    const building = f.builder.build(Object.fromEntries(outputs) as { [name: string]: MlOperand });
    this.graph = await within(BUILD_MS, building);
    this.device.counters.pipelines++;
    if (this.destroyed) this.graph.destroy();
  }

  private operand(f: Formula, known: Map<number, MlOperand>, id: number, { dataType, shape }: MlDescriptor): MlOperand {
    let operand = known.get(id);
    if (!operand) {
      const place = this.placeOf(id);
      const weight = id < FIRST_VIRTUAL_ID && this.device.buffers.get(id).constant;
      const descriptor = { dataType, shape };
      if (weight) {
        operand = f.builder.constant(descriptor, blockAt(place).buffer.bytes(place.offset, bytesOf(descriptor)));
      } else {
        operand = f.builder.input(`i${id}`, descriptor);
        this.inputs.push({ name: `i${id}`, place, descriptor, tensor: undefined });
      }
      known.set(id, operand);
    }
    return f.reshape(operand, shape);
  }

  async refused(): Promise<number | undefined> {
    return undefined;
  }

  destroy(): void {
    this.destroyed = true;
    this.graph?.destroy();
    for (const { tensor } of [...this.inputs, ...this.outputs]) if (tensor) this.device.giveBack(tensor);
    this.inputs.length = this.outputs.length = 0;
  }
}

async function within(ms: number, building: Promise<MlGraph>): Promise<MlGraph> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the browser did not build it within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([building, late]);
  } catch (error) {
    throw new RuntimeError(ErrorCode.shader, `WebNN refuses the graph: ${messageOf(error)}`, { provider: NAME });
  } finally {
    clearTimeout(timer);
  }
}

const isPort = (holder: Holder): holder is Port => 'descriptor' in holder;
