// Plans for the tests: plain objects to FlatBuffers, in the layout of py_ort/schema/*.fbs. Absent fields are omitted.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const SCALARS = {
  bool: 1,
  ubyte: 1,
  byte: 1,
  ushort: 2,
  short: 2,
  uint: 4,
  int: 4,
  float: 4,
  ulong: 8,
  long: 8,
  double: 8,
};
const SCHEMA = path.join(__dirname, '../../py_ort/schema');

/** {tables, structs: {name: [{name, type, list}]}, enums: {name: base}, values: {enum: {name: number}}}, of files. */
function readSchema(...files) {
  const text = files.map((file) => fs.readFileSync(path.join(SCHEMA, file), 'utf8').replace(/\/\/.*/g, '')).join('\n');
  const schema = { tables: {}, structs: {}, enums: {}, values: {} };
  for (const [, name, base] of text.matchAll(/enum\s+(\w+)\s*:\s*(\w+)/g)) schema.enums[name] = base;
  for (const [, name, body] of text.matchAll(/enum\s+(\w+)[^{]*\{([^}]*)\}/g)) {
    const given = [...body.matchAll(/(\w+)\s*=\s*(\d+)/g)].map(([, value, number]) => [value, Number(number)]);
    schema.values[name] = Object.fromEntries(given);
  }
  for (const [, kind, name, body] of text.matchAll(/(table|struct)\s+(\w+)\s*\{([^}]*)\}/g)) {
    schema[`${kind}s`][name] = [...body.matchAll(/(\w+)\s*:\s*(\[?)(\w+)\]?[^;]*;/g)].map(([, name, list, type]) => ({
      name,
      list: list !== '',
      type,
    }));
  }
  return schema;
}

class Writer {
  constructor(schema) {
    this.schema = schema;
    this.buffer = new Uint8Array(1 << 16);
    this.view = new DataView(this.buffer.buffer);
    this.size = 0;
  }

  reserve(size, alignment = 1, ahead = 0) {
    while ((this.size + ahead) % alignment) this.size++;
    const at = this.size;
    this.size += size;
    while (this.size > this.buffer.length) {
      const larger = new Uint8Array(this.buffer.length * 2);
      larger.set(this.buffer);
      this.buffer = larger;
      this.view = new DataView(larger.buffer);
    }
    return at;
  }
  scalar(at, type, value) {
    const base = this.schema.enums[type] ?? type;
    const { view } = this;
    if (base === 'bool') view.setUint8(at, value ? 1 : 0);
    else if (base === 'float') view.setFloat32(at, value, true);
    else if (base === 'double') view.setFloat64(at, value, true);
    else if (SCALARS[base] === 1) view.setUint8(at, value);
    else if (SCALARS[base] === 2) view.setUint16(at, value, true);
    else if (SCALARS[base] === 4) view.setUint32(at, value >>> 0, true);
    else view.setBigInt64(at, BigInt(value), true);
  }
  sizeOf(field) {
    return field.list ? 4 : (SCALARS[this.schema.enums[field.type] ?? field.type] ?? 4);
  }

  table(name, object) {
    const fields = this.schema.tables[name];
    for (const key of Object.keys(object))
      if (!fields.some((field) => field.name === key)) throw new Error(`${name} has no field ${key}`);
    const vtable = this.reserve(4 + 2 * fields.length, 2);
    const start = this.reserve(4, 8);
    const written = fields
      .filter((field) => object[field.name] !== undefined)
      .sort((a, b) => this.sizeOf(b) - this.sizeOf(a));
    const places = written.map((field) => this.reserve(this.sizeOf(field), this.sizeOf(field)));
    this.view.setUint16(vtable, 4 + 2 * fields.length, true);
    this.view.setUint16(vtable + 2, this.size - start, true);
    this.view.setInt32(start, start - vtable, true);
    written.forEach((field, i) => {
      this.view.setUint16(vtable + 4 + 2 * fields.indexOf(field), places[i] - start, true);
      const value = object[field.name];
      if (!field.list && (this.schema.enums[field.type] || SCALARS[field.type]))
        this.scalar(places[i], field.type, value);
      else this.pointTo(places[i], field.list ? this.vector(field.type, value) : this.reference(field.type, value));
    });
    return start;
  }
  pointTo(at, target) {
    this.view.setUint32(at, target - at, true);
  }
  reference(type, value) {
    if (type !== 'string') return this.table(type, value);
    const bytes = new TextEncoder().encode(value);
    const at = this.reserve(4 + bytes.length + 1, 4);
    this.view.setUint32(at, bytes.length, true);
    this.buffer.set(bytes, at + 4);
    return at;
  }
  /** The fields of a struct have one type; `length`: the number of items. */
  vector(type, items, length = items.length) {
    const struct = this.schema.structs[type];
    if (struct)
      return this.vector(
        struct[0].type,
        items.flatMap((item) => struct.map(({ name }) => item[name])),
        items.length,
      );
    const size = SCALARS[this.schema.enums[type] ?? type];
    const at = this.reserve(4 + items.length * (size ?? 4), Math.max(size ?? 4, 4), 4);
    this.view.setUint32(at, length, true);
    for (let i = 0; i < items.length; i++) {
      if (size) this.scalar(at + 4 + i * size, type, items[i]);
      else this.pointTo(at + 4 + i * 4, this.reference(type, items[i]));
    }
    return at;
  }
}

const schema = readSchema('types.fbs', 'plan.fbs');

/** The bytes of a root table. identifier: four characters, or none. */
function encode(table, object, identifier = '') {
  const writer = new Writer(schema);
  writer.reserve(8);
  for (let i = 0; i < identifier.length; i++) writer.buffer[4 + i] = identifier.charCodeAt(i);
  writer.pointTo(0, writer.table(table, object));
  return writer.buffer.slice(0, writer.size);
}

module.exports = { encode, schema };
