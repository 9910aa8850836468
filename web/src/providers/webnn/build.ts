// Graphs of a session. Segments with the same operators share one, whatever their tensors: each new MLTensor that a
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
  /** Everything that affects `emit`: equal texts, equal operators. */
  readonly form: string;
  readonly emit: Emit;
  /** The tensors of inputs on the device, in the type and shape that the node reads. */
  readonly read: readonly (Read | undefined)[];
  /** The tensors that it makes; -1: no node reads it. */
  readonly made: readonly number[];
}

/** An input or output; `id` is its number in the sketch. */
export interface GraphPort {
  readonly name: string;
  readonly id: number;
  readonly descriptor: MlDescriptor;
}

export interface BuiltGraph {
  /** Undefined if its results are not read. */
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

/** The work of a segment, with tensors by number, except weights, which are part of it. */
export class Sketch {
  /** The tensors, in the order of their numbers. */
  readonly ids: readonly number[];
  readonly key: string;
  /** The results that are read from outside. */
  readonly wanted: ReadonlySet<number>;
  /** Tensors from outside, by number, in the form of their first read. */
  readonly given: ReadonlyMap<number, MlDescriptor>;
  /** Of these, the tensors read only by commands whose results are kept: their contents are set once. */
  readonly fixed: ReadonlySet<number>;
  private readonly numbers = new Map<number, number>();

  /**
   * @param outside the results that are read from outside.
   * @param once the commands whose results are kept, by index.
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

  /** Builds it once, and keeps it until `giveBack` was called as often. */
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
  // An operator's result may also be an input or another output. Identity supports fewer types.
  const results = outputs.map(
    ({ name, id, descriptor: { shape } }) => [name, f.plain('reshape', operandAt(id), [...shape])] as const,
  );
  // A browser's graph omits inputs that none of its operators read.
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
