// A .pyort file: its plans, and the weights of one of them while they are read.
import { invalid } from '../errors';
import { named } from '../wire/values';
import { downloadChunks, type Range, type TakeChunk } from '../wire/download';
import { Checksum, type GoOn } from '../wire/checksum';
import { damaged, type Header, headerSize, PREFIX_BYTES, readHeader } from './header';
import { type OpenedFile, openFile } from './model_file';
import type { ModelFile } from './model_kinds';

/** The place of a weight in the file. */
export interface WeightPlace {
  readonly offset: number;
  readonly size: number;
  readonly form: number;
  readonly parameters?: readonly number[];
}

/** A plan of the file and its weights, which can be read once. */
export interface PackagedPlan {
  readonly providers: readonly string[];
  readonly plan: Uint8Array;
  /** In the order of the plan's weights. */
  readonly places: readonly WeightPlace[];
  download(wanted: readonly Range[], take: TakeChunk): Promise<void>;
  /** Receives a weight's bytes, too, and throws after the last ones if they differ from the written ones. */
  check(place: WeightPlace, goOn: GoOn): TakeChunk | undefined;
}

/** Finds a further file of a model. */
export type FindPart = (name: string) => ModelFile;

type OpenFile = (file: ModelFile) => Promise<OpenedFile>;

/** Unneeded parts of a file are skipped by ranges, not read, from this number of bytes on. */
const WORTH_RANGES = 4 << 20;

export class Package {
  private readonly checksums: ReadonlyMap<number, number>;

  private constructor(
    readonly header: Header,
    private readonly file: OpenedFile,
    private readonly dataStart: number,
    private readonly findPart: FindPart,
    private readonly open: OpenFile,
  ) {
    this.checksums = new Map(header.checksums);
  }

  /** @param findPart by default files next to a URL. */
  static async open(source: ModelFile, findPart?: FindPart, open: OpenFile = openFile): Promise<Package> {
    const file = await open(source);
    const { reader, what } = file;
    try {
      const prefix = await reader.read(PREFIX_BYTES);
      const text = await reader.read(headerSize(prefix, what));
      const beside = (name: string) => {
        if (typeof source === 'string' || source instanceof URL) return new URL(encodeURIComponent(name), what);
        throw invalid(
          `the model goes on in the file ${name}: give its URL, or the file in ` +
            `externalData: [{ path: '${name}', data }]`,
        );
      };
      const header = readHeader(prefix, text, what);
      return new Package(header, file, reader.position, findPart ?? beside, open);
    } catch (error) {
      reader.cancel();
      throw error;
    }
  }

  /**
   * The number of the plan for these providers: the one for the input shapes with these sizes of dimensions, if there
   * is one, otherwise the one for all shapes.
   */
  find(providers: readonly string[], dimensions: { readonly [name: string]: number } = {}): number | undefined {
    const wanted = Object.fromEntries(
      this.header.inputs.map(({ name, dims }) => [
        name,
        (dims ?? []).map((dim) => (typeof dim === 'string' ? named(dimensions, dim) : undefined) ?? dim),
      ]),
    );
    const fitting = this.header.plans
      .map((plan, number) => ({ plan, number }))
      .filter(({ plan }) => String(plan.providers) === String(providers))
      .filter(({ plan }) =>
        Object.entries(plan.shapes).every(([name, shape]) => String(named(wanted, name)) === String(shape)),
      )
      .sort((a, b) => Object.keys(b.plan.shapes).length - Object.keys(a.plan.shapes).length);
    return fitting[0]?.number;
  }

  /** Reads a plan. Only once: the rest of the file is its weights. */
  async plan(number: number): Promise<PackagedPlan> {
    const { providers, offset, size, weights } = this.header.plans[number];
    const { reader, what } = this.file;
    if (offset + size > this.header.size - this.header.parts.reduce((sum, part) => sum + part.size, 0))
      throw damaged(what, 'its plans are not in its first file');
    const known = await reader.read(offset + size);
    this.check(offset, size)?.(0, known.subarray(offset));
    return {
      providers,
      plan: known.subarray(offset),
      places: weights.map(([at, bytes, form, ...parameters]) => ({ offset: at, size: bytes, form, parameters })),
      download: (wanted, take) => this.download(known, wanted, take),
      check: (place, goOn) => this.check(place.offset, place.size, goOn),
    };
  }

  /** The placement of a plan's nodes, as JSON. Replaces `plan`: a file is read once. */
  async placement(number: number): Promise<unknown> {
    const [start, size] = this.header.plans[number].placement;
    const [text, end] = [new Uint8Array(size), start + size];
    const check = this.check(start, size);
    await this.download(new Uint8Array(0), [{ start, end }], (offset, bytes) => {
      const from = Math.max(start - offset, 0);
      const useful = bytes.subarray(from, Math.max(end - offset, 0));
      if (useful.byteLength === 0) return;
      text.set(useful, offset + from - start);
      check?.(offset + from - start, useful);
    });
    return JSON.parse(new TextDecoder().decode(text));
  }

  /** A function that computes a content's checksum as it arrives; undefined if the file has no checksums. */
  private check(offset: number, size: number, goOn?: GoOn): TakeChunk | undefined {
    const wanted = this.checksums.get(offset);
    if (wanted === undefined) return undefined;
    const sum = new Checksum(size, goOn);
    return (at, piece) => {
      const found = sum.add(at, piece);
      if (found === undefined || found === wanted) return;
      const files = this.filesOf(offset, offset + size).join(' or ');
      throw damaged(files, `its ${size} bytes of data from ${offset} on are not those that were written (CRC-32)`);
    };
  }

  /** The names of the files that contain a region. */
  private filesOf(start: number, end: number): string[] {
    const { size, parts } = this.header;
    let at = size - parts.reduce((sum, part) => sum + part.size, 0);
    const found = start < at ? [this.file.what] : [];
    for (const part of parts) {
      if (start < at + part.size && end > at) found.push(part.name);
      at += part.size;
    }
    return found;
  }

  /** No more of it is needed. */
  close(): void {
    this.file.reader.cancel();
  }

  private async download(known: Uint8Array, wanted: readonly Range[], take: TakeChunk): Promise<void> {
    const { size, parts } = this.header;
    const first = size - parts.reduce((sum, part) => sum + part.size, 0);
    if (wanted.some(({ start }) => start < known.byteLength)) take(0, known);
    let start = first;
    const further = parts.map((part) => {
      const from = start;
      start += part.size;
      return () => this.further(part.name, from, part.size, wanted, take);
    });
    await this.rest(known.byteLength, first, wanted, take);
    for (const each of further) await each();
  }

  /** Reads the rest of the first file. */
  private async rest(from: number, end: number, wanted: readonly Range[], take: TakeChunk): Promise<void> {
    const { reader, ranges, signal } = this.file;
    const within = cut(wanted, from, end);
    const useful = within.reduce((sum, range) => sum + range.end - range.start, 0);
    if (ranges !== undefined && end - from - useful > Math.max(WORTH_RANGES, useful)) {
      reader.cancel();
      const moved = within.map((range) => ({ start: range.start + this.dataStart, end: range.end + this.dataStart }));
      const takeData: TakeChunk = (offset, bytes) => {
        // A server that does not support ranges after all sends the header again.
        const header = Math.max(this.dataStart - offset, 0);
        if (header < bytes.byteLength) take(offset + header - this.dataStart, bytes.subarray(header));
      };
      return downloadChunks(ranges, this.dataStart + end, moved, takeData, signal);
    }
    const last = within.reduce((most, range) => Math.max(most, range.end), from);
    await reader.each(this.dataStart + last, (offset, bytes) => take(offset - this.dataStart, bytes));
    reader.finish(end - last);
  }

  private async further(
    name: string,
    from: number,
    size: number,
    wanted: readonly Range[],
    take: TakeChunk,
  ): Promise<void> {
    const last = cut(wanted, from, from + size).reduce((most, range) => Math.max(most, range.end), from);
    if (last === from) return;
    const { reader } = await this.open(this.findPart(name));
    try {
      await reader.each(last - from, (offset, bytes) => take(from + offset, bytes));
    } catch (error) {
      reader.cancel();
      throw error;
    }
    reader.finish(from + size - last);
  }
}

/** The parts of ranges within these bounds. */
function cut(wanted: readonly Range[], from: number, end: number): Range[] {
  return wanted
    .filter((range) => range.end > from && range.start < end)
    .map((range) => ({ start: Math.max(range.start, from), end: Math.min(range.end, end) }));
}
