// The calls of one walk of the plan to the GPU, kept for the next run with the same input shapes.
import type { DType } from '../schema';
import type { Arena, ArenaPlace, ArenaSlot } from './arena';
import { type Contents, type FixedPart, fixedPart } from './fixed_part';
import { type Held, largestSum, type Lifetime } from './memory_plan';
import { FIRST_VIRTUAL_ID } from './buffers';
import { accessOf, type Command, type CompiledSegment } from './commands';
import type { DeviceWork } from './provider';
import type { Container } from '../wire/values';
import type { Blocks } from './blocks';
import type { HostTest } from './call';

/** A kernel's output: defined by its shape, or as a view of input `view`. */
export interface OutputCall {
  readonly index: number;
  readonly dims: readonly number[];
  readonly dtype: DType;
  readonly view?: number;
}

/** Scratch memory of a kernel; `ofWeights`: see Context.temp. */
export interface Temp {
  readonly id: number;
  readonly bytes: number;
  readonly ofWeights?: boolean;
}

export interface RunEvent {
  readonly kind: 'run';
  readonly kernel: number;
  /** The core's description of inputs and outputs, without addresses. */
  readonly words: Uint32Array;
  /** Contents of the host inputs that the kernel read. */
  readonly host: ReadonlyMap<number, Uint8Array>;
  /** Tests that it made of other host inputs. */
  readonly tests: readonly HostTest[];
  readonly outputs: readonly OutputCall[];
  readonly commands: readonly Command[];
  readonly temps: readonly Temp[];
}

export interface CopyEvent {
  readonly kind: 'copy';
  readonly blocks: Blocks;
  readonly commands: readonly Command[];
}

export interface UploadEvent {
  readonly kind: 'upload';
  readonly id: number;
  data: Uint8Array;
  /** True if the bytes follow from the feeds' shapes, as far as is known. */
  fixed: boolean;
}

/** In the order of the core's calls. Ids are virtual, or persistent for weights and similar tensors. */
export type Event =
  | { readonly kind: 'feed'; readonly id: number; readonly bytes: number; readonly input: number }
  | { readonly kind: 'alloc'; readonly id: number; readonly bytes: number }
  | { readonly kind: 'free'; readonly id: number }
  | UploadEvent
  | CopyEvent
  | RunEvent;

function commandsOf(event: Event): readonly Command[] {
  return event.kind === 'run' || event.kind === 'copy' ? event.commands : [];
}

/** The events from one wait for the GPU to the next. */
export class Segment {
  events: Event[] = [];
  /** Set by commit; undefined while it may still change. */
  compiled: CompiledSegment | undefined;
  /**
   * True if it was compiled as a run's last one: then tensors that no later command needs release their memory early.
   */
  final = false;
  /** The places of the tensors made in this segment. */
  places = new Map<number, ArenaPlace>();
  /** The part that only its first run executes. */
  fixed: FixedPart | undefined;
  /** Tensors that it makes and other segments read. */
  outside: ReadonlySet<number> | undefined;

  commands(): Command[] {
    return this.events.flatMap(commandsOf);
  }

  /** True if a tensor's bytes are still there from an earlier run. */
  has(id: number): boolean {
    return (this.compiled?.settled && this.fixed?.uploads.has(id)) ?? false;
  }
}

/** An output of a closed recording, the same in each run. */
export type ClosedOutput = ClosedTensor | Container;

export interface ClosedTensor {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A virtual or persistent id, or the bytes of an output that the CPU computed. */
  readonly data: { readonly gpuId: number } | { readonly bytes: Uint8Array };
}

/** The calls of a recording with one segment, by kernel, and its uploads and feeds, by id. */
export interface Calls {
  readonly runs: ReadonlyMap<number, RunEvent>;
  readonly uploads: ReadonlyMap<number, UploadEvent>;
  /** Graph inputs. */
  readonly feeds: ReadonlyMap<number, number>;
}

/** For `refresh`. */
export interface Refreshable extends Calls {
  readonly outputs: readonly ClosedOutput[];
}

export class Recording {
  readonly segments: Segment[] = [];
  /** The arena's slots that any segment uses. */
  readonly slots = new Set<ArenaSlot>();
  /** Set if equal shapes mean equal GPU work: the core need not be called again. */
  closed: readonly ClosedOutput[] | undefined;
  /** The same if the uploads follow from feeds: `refresh` decides if it may be replayed. */
  refreshable: Refreshable | undefined;

  /** True if it was made with other shapes on the CPU; and true if a later run did not follow it to the end. */
  borrowed = false;
  diverged = false;

  constructor(
    public key: string,
    readonly gpuKey = key,
  ) {}

  /** From now on it may be refreshed, with these outputs. */
  refreshTo(outputs: readonly ClosedOutput[]): void {
    this.refreshable = { outputs, ...this.calls() };
  }

  calls(): Calls {
    const { events } = this.segments[0];
    const runs = new Map(events.flatMap((event) => (event.kind === 'run' ? [[event.kernel, event]] : [])));
    const uploads = new Map(events.flatMap((event) => (event.kind === 'upload' ? [[event.id, event]] : [])));
    const feeds = new Map(events.flatMap((event) => (event.kind === 'feed' ? [[event.id, event.input]] : [])));
    return { runs, uploads, feeds };
  }

  /** The place of virtual tensor `id`, which one of the segments up to `last` made. */
  placeOf(id: number, last = this.segments.length - 1): ArenaPlace {
    for (let i = last; i >= 0; i--) {
      const place = this.segments[i].places.get(id);
      if (place) return place;
    }
    throw new Error(`no memory was planned for the virtual tensor ${id}`);
  }

  /**
   * Plans the memory of segment `index`, whose predecessors have theirs; returns its commands in the plan's form.
   * @param survivors of the last segment of a run: tensors that are needed after it.
   */
  place(index: number, arena: Arena, session: DeviceWork, survivors?: ReadonlySet<number>): Command[] {
    const { buffers } = session.provider;
    const segment = this.segments[index];
    segment.final = survivors !== undefined;
    const { tensors, freedAt } = lifetimes(segment, survivors);
    const held = new Map<ArenaSlot, Held[]>();
    for (const [id, bytes] of this.aliveBefore(index)) {
      const { slot, offset } = this.placeOf(id, index - 1);
      held.set(slot, [...(held.get(slot) ?? []), { id, bytes, offset, start: -1, end: freedAt.get(id) ?? Infinity }]);
    }
    const commands = segment.commands();
    const accesses = commands.map(accessOf);
    const isWeight = (id: number) => id < FIRST_VIRTUAL_ID && buffers.get(id).constant === true;
    const contents = contentsOf(segment, tensors);
    const fixed = fixedPart(tensors, accesses, { isWeight, ...contents }, arena.roomToKeep(largestSum(tensors)));
    const { places, plan } = arena.place(tensors, accesses, held, fixed.kept, contents.ofWeights);
    segment.places = places;
    const stays = survivors ?? { has: (id: number) => !freedAt.has(id) };
    segment.outside = new Set(tensors.flatMap(({ id }) => (stays.has(id) ? [id] : [])));
    segment.fixed = fixed;
    for (const { slot } of places.values()) this.keep(slot);
    return session.asPlanned(commands, plan, fixed.kept);
  }

  /** Cuts segment `index` to its first `count` events. */
  truncate(index: number, count: number, arena: Arena): void {
    this.unplace(index, arena);
    this.segments.length = index + 1;
    this.segments[index].events.length = count;
  }

  /** Removes the places of segments from `index` on: they must be compiled again. */
  unplace(index: number, arena: Arena): void {
    for (const segment of this.segments.slice(index)) {
      segment.compiled?.destroy();
      segment.compiled = undefined;
      const kept = new Set([...segment.places.values()].map(({ slot }) => slot).filter((slot) => slot.kept));
      for (const slot of kept) this.slots.delete(slot);
      arena.release(kept);
      segment.places.clear();
    }
  }

  private keep(slot: ArenaSlot): void {
    if (this.slots.has(slot)) return;
    this.slots.add(slot);
    slot.users++;
  }

  /** The tensors of earlier segments that are alive in segment `index`, and their bytes. */
  private aliveBefore(index: number): Map<number, number> {
    const alive = new Map<number, number>();
    for (const { events } of this.segments.slice(0, index)) {
      for (const event of events) {
        if (event.kind === 'feed' || event.kind === 'alloc') alive.set(event.id, event.bytes);
        else if (event.kind === 'free') alive.delete(event.id);
      }
    }
    return alive;
  }

  destroy(arena: Arena): void {
    for (const { compiled } of this.segments) compiled?.destroy();
    arena.release(this.slots);
  }
}

function contentsOf({ events, final }: Segment, tensors: readonly Lifetime[]): Omit<Contents, 'isWeight'> {
  const uploads = events.filter((event) => event.kind === 'upload');
  const feeds = events.filter((event) => event.kind === 'feed');
  // Tensors that other segments read may be written in those.
  const found = final ? [] : tensors.filter(({ end }) => end === Infinity);
  return {
    ofWeights: new Set(
      events.flatMap((event) =>
        event.kind === 'run' ? event.temps.flatMap(({ id, ofWeights }) => (ofWeights ? [id] : [])) : [],
      ),
    ),
    uploaded: new Set(uploads.flatMap(({ id, fixed }) => (fixed ? [id] : []))),
    changing: new Set([...feeds, ...uploads.filter(({ fixed }) => !fixed), ...found].map(({ id }) => id)),
  };
}

/**
 * The lifetimes of the tensors made in a segment, and the times at which it frees tensors, in numbers of commands.
 * @param survivors for the last segment of a run: all other tensors end with their last command.
 */
export function lifetimes(
  { events }: Segment,
  survivors?: ReadonlySet<number>,
): { tensors: Lifetime[]; freedAt: Map<number, number> } {
  const born = new Map<number, { bytes: number; start: number }>();
  const freedAt = new Map<number, number>();
  const temps: Lifetime[] = [];
  let commands = 0;
  for (const event of events) {
    if (event.kind === 'feed') born.set(event.id, { bytes: event.bytes, start: -1 });
    // An output's allocation follows its run event; the run's commands already write it.
    else if (event.kind === 'alloc') born.set(event.id, { bytes: event.bytes, start: commands });
    else if (event.kind === 'free') freedAt.set(event.id, commands - 1);
    else if (event.kind === 'upload' && born.has(event.id)) born.get(event.id)!.start = -1;
    else if (event.kind === 'copy') commands += event.commands.length;
    else if (event.kind === 'run') {
      for (const { id, bytes } of event.temps) temps.push({ id, bytes, start: commands, end: commands });
      commands += event.commands.length;
    }
  }
  const uses = usesOf(events);
  const tensors = [...born].map(([id, { bytes, start: bornAt }]) => {
    const use = uses.get(id);
    const start = Math.min(bornAt, use?.first ?? bornAt);
    const end = survivors && !survivors.has(id) ? (use?.last ?? start) : (freedAt.get(id) ?? Infinity);
    return { id, bytes, start, end: Math.max(start, end) };
  });
  const used = temps.map((temp) => {
    const use = uses.get(temp.id);
    return use ? { ...temp, start: use.first, end: use.last } : temp;
  });
  return { tensors: [...tensors, ...used], freedAt };
}

/** The first and the last command that accesses each tensor. */
function usesOf(events: readonly Event[]): Map<number, { first: number; last: number }> {
  const uses = new Map<number, { first: number; last: number }>();
  let commands = 0;
  for (const event of events) {
    for (const command of commandsOf(event)) {
      for (const { id } of command.kind === 'dispatch' ? command.bindings : [command.source, command.target]) {
        const use = uses.get(id);
        if (use) use.last = commands;
        else uses.set(id, { first: commands, last: commands });
      }
      commands++;
    }
  }
  return uses;
}
