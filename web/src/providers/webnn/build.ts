// Graphs of a session. Segments that do the same share one, whatever tensors they are given: each new MLTensor that a
// page feeds makes another recording.
import type { Program } from '../../device/commands';
import { messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import type { MlDevice } from './device';
import { Formula } from './formula';
import { blockAt } from './memory';
import { bytesOf, type MlDescriptor, type MlGraph, type MlOperand, NAME } from './ml';
import type { Emit } from './operator';
import type { Read } from './trial';

export interface MlProgram extends Program {
  /** All that decides what `emit` does: equal texts, equal operators. */
  readonly form: string;
  readonly emit: Emit;
  /** Of inputs on the device, which tensors they are, as what the node reads them. */
  readonly read: readonly (Read | undefined)[];
  /** The tensors that it makes; -1: nobody reads it. */
  readonly made: readonly number[];
}

/** An input or output; `id` is its number in the sketch. */
export interface GraphPort {
  readonly name: string;
  readonly id: number;
  readonly descriptor: MlDescriptor;
}

export interface BuiltGraph {
  /** Undefined where nobody reads what it makes. */
  readonly native: MlGraph | undefined;
  readonly inputs: readonly GraphPort[];
  readonly outputs: readonly GraphPort[];
}

export interface GraphEntry {
  readonly key: string;
  readonly graph: Promise<BuiltGraph>;
  users: number;
}

/** A build that never ends must not end the page. */
const BUILD_MS = 60_000;

/** The work of a segment with tensors by number, but for weights, which are part of it. */
export class Sketch {
  /** The tensors, in the order of their numbers. */
  readonly ids: readonly number[];
  readonly key: string;
  /** Of what it makes, what is read from outside. */
  readonly wanted: ReadonlySet<number>;
  /** Tensors that come from outside, by number, as they are read first. */
  readonly given: ReadonlyMap<number, MlDescriptor>;
  /** Of these, those that only commands read whose results stay: their contents come once. */
  readonly fixed: ReadonlySet<number>;
  private readonly numbers = new Map<number, number>();

  /**
   * @param outside of the tensors that it makes, those that are read from outside.
   * @param once the commands whose results stay, by index.
   */
  constructor(
    readonly programs: readonly MlProgram[],
    readonly isWeight: (id: number) => boolean,
    outside: ReadonlySet<number> | undefined,
    once: ReadonlySet<number> | undefined,
  ) {
    const makes = (id: number) => id >= 0 && (!outside || outside.has(id));
    this.wanted = new Set(programs.flatMap(({ made }) => made.filter(makes)));
    const texts = programs.map(({ form, read, made }) => {
      const given = read.map((one) => (one && isWeight(one.id) ? `w${one.id}` : one && this.number(one.id)));
      const results = made.map((id) => (id < 0 ? id : `${this.number(id)}${this.wanted.has(id) ? '!' : ''}`));
      return `${form}(${given}) ${results}`;
    });
    this.key = texts.join('\n');
    this.ids = [...this.numbers.keys()];
    const [given, varying, inside] = [new Map<number, MlDescriptor>(), new Set<number>(), new Set<number>()];
    programs.forEach(({ read, made }, i) => {
      for (const one of read) {
        if (!one || isWeight(one.id) || inside.has(one.id)) continue;
        const number = this.number(one.id);
        given.set(number, given.get(number) ?? one.descriptor);
        if (!once?.has(i)) varying.add(number);
      }
      for (const id of made) inside.add(id);
    });
    this.given = given;
    this.fixed = new Set([...given.keys()].filter((number) => !varying.has(number)));
  }

  number(id: number): number {
    const number = this.numbers.get(id) ?? this.numbers.size;
    this.numbers.set(id, number);
    return number;
  }
}

export class Graphs {
  private readonly known = new Map<string, GraphEntry>();

  constructor(private readonly device: MlDevice) {}

  /** Built once, until as many calls of `giveBack`. */
  take(sketch: Sketch): GraphEntry {
    const { key } = sketch;
    const entry = this.known.get(key) ?? { key, graph: build(this.device, sketch), users: 0 };
    this.known.set(key, entry);
    entry.users++;
    return entry;
  }

  giveBack(entry: GraphEntry): void {
    entry.users--;
    if (entry.users > 0) return;
    this.known.delete(entry.key);
    entry.graph.then(
      ({ native }) => native?.destroy(),
      () => undefined,
    );
  }
}

async function build(device: MlDevice, sketch: Sketch): Promise<BuiltGraph> {
  const f = new Formula(device.context);
  const known = new Map<number, MlOperand>();
  const inputs: GraphPort[] = [];
  const operandOf = (id: number, descriptor: MlDescriptor): MlOperand => {
    if (sketch.isWeight(id)) {
      const { buffer, offset } = blockAt(device.buffers.get(id));
      return f.known(descriptor, buffer.bytes(offset, bytesOf(descriptor)));
    }
    const number = sketch.number(id);
    inputs.push({ name: `i${number}`, id: number, descriptor });
    return f.builder.input(`i${number}`, descriptor);
  };
  for (const { emit, read, made } of sketch.programs) {
    const x = read.map((one) => {
      if (!one) return undefined;
      const operand = known.get(one.id) ?? operandOf(one.id, one.descriptor);
      known.set(one.id, operand);
      return f.reshape(operand, one.descriptor.shape);
    });
    const results = [emit(f, x as MlOperand[])].flat();
    made.forEach((id, i) => known.set(id, results[i]));
  }
  const outputs = [...sketch.wanted].map((id): GraphPort => {
    const { dataType, shape } = known.get(id)!;
    return { name: `o${sketch.number(id)}`, id: sketch.number(id), descriptor: { dataType, shape } };
  });
  if (outputs.length === 0) return { native: undefined, inputs: [], outputs };
  const operandAt = (id: number) => known.get(sketch.ids[id])!;
  // What an operator made, an input or another output may be, too. Identity knows fewer types.
  const results = outputs.map(
    ({ name, id, descriptor: { shape } }) => [name, f.plain('reshape', operandAt(id), [...shape])] as const,
  );
  // A browser's graph knows no input that nothing of it reads.
  const reached = f.reached(results.map(([, operand]) => operand));
  const native = await within(BUILD_MS, f.builder.build(Object.fromEntries(results)));
  device.counters.pipelines++;
  return { native, inputs: inputs.filter(({ id }) => reached.has(operandAt(id))), outputs };
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
