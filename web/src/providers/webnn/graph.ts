// A segment as one graph. It is built when its first run is submitted to the context, and kept; segments that differ
// only in their inputs share one.
import type { CompiledSegment } from '../../device/commands';
import type { Placement } from '../../device/memory';
import type { Submission } from '../../device/provider';
import type { BuiltGraph, GraphEntry, GraphPort, Graphs, Sketch } from './build';
import type { MlDevice } from './device';
import { blockAt, type Holder } from './memory';
import { bytesOf, hasForm, type MlDescriptor, type MlTensor } from './ml';

interface Port extends Holder {
  readonly name: string;
  /** Its number in the sketch. */
  readonly id: number;
  readonly place: Placement;
  readonly descriptor: MlDescriptor;
}

/** Contents of an input: a tensor, or bytes to write into the port's own tensor. */
type Content = MlTensor | Uint8Array;
/** By the numbers of inputs, without those whose contents are set once. */
type Contents = ReadonlyMap<number, Content>;
type Bound = [port: Port, tensor: MlTensor];

/** The work of a run: the bytes to read, and copies to wait for. */
interface Given {
  readonly parts: readonly (Promise<Uint8Array> | Uint8Array)[];
  readonly copies: readonly (Promise<void> | void)[];
}

export class MlSegment implements CompiledSegment {
  settled = false;
  private entry: GraphEntry | undefined;
  /** Set once it is built. */
  private graph: BuiltGraph | undefined;
  private inputs: readonly Port[] = [];
  private outputs: readonly Port[] = [];
  /** Tensors of inputs whose contents are set once, by number. */
  private readonly kept = new Map<number, MlTensor>();

  constructor(
    private readonly device: MlDevice,
    private readonly graphs: Graphs,
    private readonly sketch: Sketch,
    private readonly placeOf: (id: number) => Placement,
  ) {}

  /** Submits a run to the context; returns the bytes to read, once they are there. */
  async run(keep: Submission['keep'], read: Submission['read']): Promise<Uint8Array[]> {
    const taken = this.taken();
    const atOnce = this.device.idle && this.ready(taken);
    // The source may be overwritten before the context is ready.
    const contents = atOnce ? taken : new Map([...taken].map(([id, content]) => [id, copied(content)]));
    const give = (these: Contents) => this.give(these, keep, read);
    try {
      const work = () => (this.ready(contents) ? give(contents) : this.prepare(contents).then(give));
      const { parts, copies } = await this.device.inOrder(work);
      await Promise.all(copies);
      return await Promise.all(parts);
    } catch (error) {
      throw await this.device.failure(error);
    }
  }

  /** The current contents of its inputs. */
  private taken(): Contents {
    const { given, ids } = this.sketch;
    const missing = [...given].filter(([id]) => !this.kept.has(id));
    return new Map(missing.map(([id, descriptor]) => [id, contentOf(this.placeOf(ids[id]), descriptor)]));
  }

  private ready(contents: Contents): boolean {
    if (!this.graph || this.outputs.some(({ tensor }) => !tensor)) return false;
    return this.inputs.every(({ id, tensor, descriptor }) => {
      const content = contents.get(id);
      return this.kept.has(id) || (content !== undefined && tensor !== undefined && suits(content, descriptor));
    });
  }

  private give(contents: Contents, keep: Submission['keep'], read: Submission['read']): Given {
    const { context, counters } = this.device;
    const inputs = this.inputs.map((port): Bound => {
      const kept = this.kept.get(port.id);
      if (kept) return [port, kept];
      const content = contents.get(port.id)!;
      if (content instanceof Uint8Array) context.writeTensor(port.tensor!, content);
      const tensor = content instanceof Uint8Array ? port.tensor! : content;
      if (this.sketch.fixed.has(port.id)) this.kept.set(port.id, tensor);
      return [port, tensor];
    });
    const outputs = this.targets(keep, new Set(inputs.map(([, tensor]) => tensor)));
    if (this.graph?.native) {
      counters.dispatches++;
      try {
        context.dispatch(this.graph.native, byName(inputs), byName(outputs));
      } catch (error) {
        const places = [...this.inputs.map(({ place }) => place), ...keep.map(({ target }) => target)];
        throw this.device.blamed(
          error,
          places.map((place) => blockAt(place).buffer.lentAs),
        );
      }
    }
    for (const [port, tensor] of outputs)
      blockAt(port.place).buffer.hold(port.place.offset, tensor === port.tensor ? port : { tensor });
    const parts = read.map((place) => this.device.readNow(place, place.bytes));
    return { parts, copies: keep.map(({ source, target, bytes }) => this.keep(source, target, bytes)) };
  }

  /** The tensor for each output: that of the place where it is kept, unless the run uses that tensor otherwise. */
  private targets(keep: Submission['keep'], used: Set<MlTensor>): Bound[] {
    return this.outputs.map((port) => {
      const { buffer, offset } = port.place;
      const found = keep
        .filter(({ source }) => source.buffer === buffer && source.offset === offset)
        .map(({ target }) => blockAt(target).buffer.target(port.descriptor))
        .find((tensor) => tensor && !used.has(tensor));
      if (found) used.add(found);
      return [port, found ?? port.tensor!];
    });
  }

  /** Moves an output's own tensor to the target, or makes a copy, which must be awaited. */
  private keep(source: Placement, target: Placement, bytes: number): void | Promise<void> {
    const [from, to] = [blockAt(source), blockAt(target)];
    const holder = from.buffer.holder(from.offset);
    if (holder?.tensor && (isPort(holder) || to.buffer.target(holder.tensor) === holder.tensor)) {
      const isPorts = isPort(holder);
      if (to.buffer.take(to.offset, holder.tensor)) {
        if (isPorts) holder.tensor = undefined;
        return;
      }
    }
    const read = this.device.readNow(source, bytes);
    if (read instanceof Uint8Array) return to.buffer.write(to.offset, read);
    return this.device.inOrder(() => read.then((contents) => to.buffer.write(to.offset, contents)));
  }

  /** Builds the graph and creates missing tensors; returns the contents of inputs in the graph's form. */
  private async prepare(contents: Contents): Promise<Contents> {
    if (!this.graph) {
      this.entry ??= this.graphs.take(this.sketch);
      this.graph = await this.entry.graph;
      const portOf = ({ name, id, descriptor }: GraphPort) => ({
        name,
        id,
        descriptor,
        place: this.placeOf(this.sketch.ids[id]),
        tensor: undefined,
      });
      this.inputs = this.graph.inputs.map(portOf);
      this.outputs = this.graph.outputs.map(portOf);
    }
    for (const port of [...this.inputs, ...this.outputs]) port.tensor ??= await this.device.tensor(port.descriptor);
    const fitting = new Map(contents);
    for (const { id, descriptor, place } of this.inputs) {
      const content = contents.get(id);
      if (content === undefined || suits(content, descriptor)) continue;
      fitting.set(id, await this.device.contents(content as MlTensor, blockAt(place).buffer.lentAs));
    }
    return fitting;
  }

  async refused(): Promise<number | undefined> {
    return undefined;
  }

  destroy(): void {
    if (this.entry) this.graphs.giveBack(this.entry);
    for (const { tensor } of [...this.inputs, ...this.outputs]) if (tensor) this.device.giveBack(tensor);
    this.inputs = this.outputs = [];
  }
}

function contentOf(place: Placement, descriptor: MlDescriptor): Content {
  const { buffer, offset } = blockAt(place);
  return buffer.holder(offset)?.tensor ?? buffer.bytes(offset, bytesOf(descriptor));
}

const copied = (content: Content) => (content instanceof Uint8Array ? content.slice() : content);

const suits = (content: Content, form: MlDescriptor) => content instanceof Uint8Array || hasForm(content, form);

const byName = (bound: readonly Bound[]) => Object.fromEntries(bound.map(([{ name }, tensor]) => [name, tensor]));

const isPort = (holder: Holder): holder is Port => 'descriptor' in holder;
