// One run, from the device's side: resolve records the core's calls, or finds them recorded; commit executes them.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import type { Timeline } from '../timeline';
import { sameContents } from '../contract/elements';
import { type Blocks, sameBlocks } from './blocks';
import { FIRST_VIRTUAL_ID } from './buffers';
import { type Command, type CompiledSegment, type CompileProgress, compilePrograms } from './commands';
import type { Placement } from './memory';
import type { DeviceTimes } from './profile';
import type { DeviceWork, PendingReadback, RunErrors } from './provider';
import { type Event, type Recording, Segment } from './recording';

/** The limit of one segment: a loop may have any number of trips. */
const MOST_EVENTS = 2 ** 21;

/** Bytes to read back. */
export interface Wanted {
  readonly id: number;
  readonly bytes: number;
}

/** Bytes to keep beyond the run, in the persistent buffer `as`. */
export interface Kept extends Wanted {
  readonly as: number;
}

export class Recorder {
  private index = 0;
  private cursor = 0;
  /** True if all calls of the core so far match the recording. */
  private matching: boolean;
  /** The next id for new tensors. */
  nextId: number;
  /** One for each submitted segment, if requested. */
  readonly profilers: DeviceTimes[] = [];
  /** True if the core's calls so far follow from the feeds' shapes: equal shapes, equal bytes. */
  byShapes: () => boolean = () => false;
  /** Time spent waiting for pipelines and making bind groups. */
  compileMs = 0;
  /** The segments that this run submitted. */
  private readonly submitted: CompiledSegment[] = [];
  /** True if a compiled segment had to be compiled again. */
  private unplaced = false;
  /** Contents of this run's feeds and uploads that wait for the next commit, by virtual id. */
  private pending = new Map<number, Uint8Array>();
  /** The bytes of tensors that came from the CPU in this run, by virtual id: reading them back needs no GPU. */
  private readonly known = new Map<number, Uint8Array>();

  constructor(
    private readonly session: DeviceWork,
    readonly recording: Recording,
    private readonly errors: RunErrors,
    private readonly compiling?: CompileProgress,
    private readonly timeline?: Timeline,
  ) {
    this.matching = recording.segments.length > 0;
    if (!this.matching) recording.segments.push(new Segment());
    this.nextId = FIRST_VIRTUAL_ID;
  }

  get segmentCount(): number {
    return this.index + 1;
  }

  /** True if the run has needed nothing new so far. */
  get replaying(): boolean {
    return this.matching && !this.unplaced;
  }

  private get segment(): Segment {
    return this.recording.segments[this.index];
  }

  /**
   * The next recorded event if `same` accepts it; otherwise recording continues from here, and the result is undefined.
   */
  expect<K extends Event['kind']>(
    kind: K,
    same: (event: Extract<Event, { kind: K }>) => boolean,
  ): Extract<Event, { kind: K }> | undefined {
    if (!this.matching) return undefined;
    const event = this.segment.events[this.cursor];
    if (event?.kind === kind && same(event as Extract<Event, { kind: K }>)) {
      this.cursor++;
      return event as Extract<Event, { kind: K }>;
    }
    this.diverge();
    return undefined;
  }

  private diverge(): void {
    this.recording.diverged ||= this.matching;
    this.matching = false;
    this.recording.closed = this.recording.refreshable = undefined;
    this.recording.truncate(this.index, this.cursor, this.session.memory.arena);
    for (const { events } of this.recording.segments) {
      for (const event of events) {
        if (event.kind === 'run') for (const { id } of event.temps) this.nextId = Math.max(this.nextId, id + 1);
        else if (event.kind === 'alloc' || event.kind === 'feed') this.nextId = Math.max(this.nextId, event.id + 1);
      }
    }
  }

  record(event: Event): void {
    this.segment.events.push(event);
    if (this.segment.events.length > MOST_EVENTS)
      throw new RuntimeError(
        ErrorCode.out_of_memory,
        `a run of more than ${MOST_EVENTS} steps on a device has no end, or no memory: place its nodes on the CPU`,
      );
  }

  newId(): number {
    return this.nextId++;
  }

  /** Graph input `input`, whose contents are written at the next commit. */
  feed(input: number, data: Uint8Array, bytes: number): number {
    const recorded = this.expect('feed', (event) => event.input === input && event.bytes === bytes);
    const id = recorded?.id ?? this.newId();
    if (!recorded) this.record({ kind: 'feed', id, bytes, input });
    this.pending.set(id, data);
    this.known.set(id, data);
    return id;
  }

  allocate(bytes: number): number {
    const recorded = this.expect('alloc', (event) => event.bytes === bytes);
    if (recorded) return recorded.id;
    const id = this.newId();
    this.record({ kind: 'alloc', id, bytes });
    return id;
  }

  free(id: number): void {
    if (!this.expect('free', (event) => event.id === id)) this.record({ kind: 'free', id });
  }

  /** Contents from the CPU; the recorder owns `data` from now on. */
  upload(id: number, data: Uint8Array): void {
    const recorded = this.expect('upload', (event) => event.id === id);
    if (!recorded) this.record({ kind: 'upload', id, data, fixed: this.byShapes() });
    else if (recorded.fixed && !sameContents(recorded.data, data)) {
      // The recording was made by a run with other tensors on the CPU.
      recorded.fixed = false;
      this.recording.unplace(this.index, this.session.memory.arena);
      this.unplaced = true;
    }
    if (recorded) recorded.data = data;
    this.pending.set(id, data);
    this.known.set(id, data);
  }

  /** Between tensors; `commands` makes the copy if it is new. */
  copy(blocks: Blocks, commands: () => readonly Command[]): void {
    this.known.delete(blocks.target.id);
    if (!this.expect('copy', (event) => sameBlocks(event.blocks, blocks)))
      this.record({ kind: 'copy', blocks, commands: commands() });
  }

  /** The bytes of a tensor that came from the CPU in this run. */
  bytesOf(id: number): Uint8Array | undefined {
    return this.known.get(id);
  }

  /**
   * Compiles the open segment if it is new, and submits it.
   * @param read tensors to read back.
   * @param keep tensors to copy into persistent buffers.
   * @param survivors of the last commit of a run: all ids that may be read or kept after it.
   */
  async commit(
    read: readonly Wanted[],
    keep: readonly Kept[] = [],
    survivors?: ReadonlySet<number>,
  ): Promise<PendingReadback> {
    const { segment, errors } = this;
    // The former last segment may now be followed by others, which need tensors whose memory it released.
    if (this.matching && (this.cursor !== segment.events.length || (segment.final && !survivors))) this.diverge();
    const making = !segment.compiled;
    if (making) {
      const { arena } = this.session.memory;
      const commands = errors.during(true, () => this.recording.place(this.index, arena, this.session, survivors));
      const start = performance.now();
      const shaders = await compilePrograms(commands, this.compiling);
      segment.compiled = errors.during(true, () =>
        this.session.build(commands, (id) => this.place(id), segment.fixed?.once, segment.outside),
      );
      this.compileMs += performance.now() - start;
      this.timeline?.add('compile shaders', 'page', start, { shaders });
    }
    return errors.during(making, () => {
      this.writeAll([...this.pending].filter(([id]) => !segment.has(id)));
      this.pending.clear();
      return this.submit(segment, read, keep);
    });
  }

  /** Call after a commit that is not the run's last: what follows belongs to the next segment. */
  nextSegment(): void {
    this.index++;
    this.cursor = 0;
    if (this.index < this.recording.segments.length) return;
    this.matching = false;
    this.recording.segments.push(new Segment());
    this.diverge();
  }

  /** Runs a closed recording again, without making anything or calling the core. `feeds`: by graph input. */
  replay(feeds: ReadonlyMap<number, Uint8Array>, read: readonly Wanted[], keep: readonly Kept[]): PendingReadback {
    const { segment } = this;
    const contents: [number, Uint8Array][] = [];
    for (const event of segment.events) {
      if (event.kind === 'feed') contents.push([event.id, feeds.get(event.input)!]);
      else if (event.kind === 'upload' && !segment.has(event.id)) contents.push([event.id, event.data]);
    }
    return this.errors.during(false, () => {
      this.writeAll(contents);
      return this.submit(segment, read, keep);
    });
  }

  /** The run has ended without errors: the one-time work is done. */
  succeeded(): void {
    for (const compiled of this.submitted) compiled.settled = true;
  }

  /** The kernel instance of the dispatch that the GPU refuses, among those that the run submitted. */
  async refused(): Promise<number | undefined> {
    for (const compiled of this.submitted) {
      const instance = await compiled.refused();
      if (instance !== undefined) return instance;
    }
    return undefined;
  }

  private submit(segment: Segment, read: readonly Wanted[], keep: readonly Kept[]): PendingReadback {
    const start = performance.now();
    const compiled = segment.compiled!;
    const copies = keep
      .map(({ id, bytes, as }) => ({ source: this.place(id), target: this.place(as), bytes }))
      // An output that is an input, bound to the same place.
      .filter(({ source, target }) => source.buffer !== target.buffer || source.offset !== target.offset);
    const downloads = read.map(({ id, bytes }) => ({ ...this.place(id), bytes }));
    const submission = { segment: compiled, keep: copies, read: downloads, timed: this.timeline?.timed };
    const { pending, times } = this.session.submit(submission);
    this.submitted.push(compiled);
    if (times) this.profilers.push(times);
    this.timeline?.add('encode and submit', 'page', start, { segment: this.index });
    return this.timeline ? this.timed(pending, read, this.timeline) : pending;
  }

  /** The readback, with a span from the submit to the bytes. */
  private timed(pending: PendingReadback, read: readonly Wanted[], timeline: Timeline): PendingReadback {
    const [start, segment] = [performance.now(), this.index];
    const bytes = read.reduce((sum, wanted) => sum + wanted.bytes, 0);
    return {
      finish: async (use) => {
        const result = await pending.finish(use);
        timeline.add('GPU work and download', 'gpu', start, { segment, bytes, tensors: read.length });
        return result;
      },
    };
  }

  private writeAll(contents: Iterable<readonly [number, Uint8Array]>): void {
    const start = performance.now();
    let [bytes, tensors] = [0, 0];
    for (const [id, data] of contents) {
      this.session.provider.write(this.place(id), data);
      bytes += data.byteLength;
      tensors++;
    }
    if (tensors > 0) this.timeline?.add('upload', 'page', start, { bytes, tensors });
  }

  private place(id: number): Placement {
    if (id < FIRST_VIRTUAL_ID) return this.session.provider.buffers.get(id);
    const { slot, offset } = this.recording.placeOf(id, this.index);
    return { buffer: slot.buffer, offset };
  }
}
