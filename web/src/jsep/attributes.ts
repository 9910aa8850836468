// Reading a node's attributes, as they come with jsepCreateKernel.
import * as flatbuffers from 'flatbuffers';
import { Attribute, Attributes as Table } from '../schema';

/** A node's attributes in the form that Python's lowering leaves; defaults are the caller's. Integers beyond 2^53 are not exact. */
export class Attributes {
  private readonly byName = new Map<string, Attribute>();

  constructor(bytes: Uint8Array) {
    if (bytes.length === 0) return;
    // Copied: the bytes are in the core's heap, which may move.
    const table = Table.getRootAsAttributes(new flatbuffers.ByteBuffer(bytes.slice()));
    for (let i = 0; i < table.itemsLength(); i++) {
      const item = table.items(i)!;
      this.byName.set(item.name()!, item);
    }
  }

  has(name: string): boolean {
    return this.byName.has(name);
  }
  integer(name: string, otherwise: number): number {
    const item = this.byName.get(name);
    return item ? Number(item.i()) : otherwise;
  }
  number(name: string, otherwise: number): number {
    const item = this.byName.get(name);
    return item ? item.f() : otherwise;
  }
  text(name: string, otherwise: string): string {
    return this.byName.get(name)?.s() ?? otherwise;
  }
  integers(name: string, otherwise: readonly number[] = []): number[] {
    const item = this.byName.get(name);
    return item ? Array.from({ length: item.intsLength() }, (_, i) => Number(item.ints(i))) : [...otherwise];
  }
  numbers(name: string, otherwise: readonly number[] = []): number[] {
    const item = this.byName.get(name);
    return item ? Array.from({ length: item.floatsLength() }, (_, i) => item.floats(i)!) : [...otherwise];
  }
  texts(name: string): string[] {
    const item = this.byName.get(name);
    return item ? Array.from({ length: item.stringsLength() }, (_, i) => item.strings(i)) : [];
  }
}
