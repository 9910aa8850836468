import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, DType, Location, RunResultT, RunT, ValueKind } from '../../src/schema';
import { Assembler } from '../../src/wire/frames';
import {
  decodeAnnounced,
  decodeMessage,
  encodeMessage,
  readTensor,
  readValue,
  TensorWriter,
} from '../../src/wire/messages';

test('messages: tensors on the CPU and on the GPU come back', () => {
  const writer = new TensorWriter();
  const a = { dtype: DType.float32, dims: [3], data: new Uint8Array(Float32Array.of(1, 2, 3).buffer) };
  const b = { dtype: DType.int64, dims: [0, 5], data: new Uint8Array(0) };
  const c = { dtype: DType.uint8, dims: [], data: Uint8Array.of(9) };
  const d = { dtype: DType.bool_, dims: [2, 2], gpuId: 77 };
  for (const [name, tensor] of Object.entries({ a, b, c, d })) writer.add(name, tensor);
  const assembler = new Assembler();
  let message: ReturnType<typeof decodeMessage> | undefined;
  for (const frame of encodeMessage(5, Body.RunResult, new RunResultT(writer.descriptions, '{}'), writer.payload)) {
    const assembled = assembler.receive(frame);
    if (assembled) message = decodeMessage(assembled);
  }
  assert.equal(message!.id, 5);
  assert.equal(message!.type, Body.RunResult);
  const { outputs } = message!.body as RunResultT;
  assert.deepEqual(
    outputs.map(({ name }) => name),
    ['a', 'b', 'c', 'd'],
  );
  assert.deepEqual(
    outputs.map((output) => readTensor(output, message!.payload)),
    [a, b, c, d],
  );
  assert.equal(message!.payload.byteLength, 16 + 1);
  assert.equal(outputs[3].location, Location.device);
  assert.equal(outputs[3].size, 4n);
});

test('messages: sequences and optionals come back', () => {
  const tensor = (value: number) => ({ dtype: DType.uint8, dims: [1], data: Uint8Array.of(value) });
  const sequence = { kind: ValueKind.sequence as const, dtype: DType.uint8, items: [tensor(1), tensor(2)] };
  const values = {
    sequence,
    nothing: { kind: ValueKind.optional as const, dtype: DType.float32, items: [] },
    nested: { kind: ValueKind.optional as const, dtype: DType.uint8, items: [sequence] },
  };
  const writer = new TensorWriter();
  for (const [name, value] of Object.entries(values)) writer.add(name, value);
  const run = new RunT(1, writer.descriptions);
  const assembler = new Assembler();
  const [message] = [...encodeMessage(1, Body.Run, run, writer.payload)].flatMap((frame) => {
    const whole = assembler.receive(frame);
    return whole ? [decodeMessage(whole)] : [];
  });
  const { feeds } = message.body as RunT;
  assert.deepEqual(
    feeds.map((feed) => readValue(feed, message.payload)),
    Object.values(values),
  );
});

test('messages: a tensor beyond the payload is refused', () => {
  const run = new RunT(1, [], [], []);
  const [frame] = encodeMessage(1, Body.Run, run);
  const { payload } = decodeMessage(new Assembler().receive(frame)!);
  const writer = new TensorWriter();
  writer.add('x', { dtype: DType.uint8, dims: [4], data: new Uint8Array(4) });
  assert.throws(() => readTensor(writer.descriptions[0], payload), /ends at byte 4/);
});

test('messages: a payload that is elsewhere is announced by its URL', () => {
  const run = new RunT(1, [], [], []);
  const url = new TextEncoder().encode('http://127.0.0.1:1/blob/x');
  const [frame] = encodeMessage(7, Body.Run, run, [url]);
  new DataView(frame.buffer, frame.byteOffset).setUint32(12, 1, true);
  const assembled = new Assembler().receive(frame)!;
  assert.equal(assembled.elsewhere, true);
  const announced = decodeAnnounced(assembled);
  assert.deepEqual([announced.id, announced.url, announced.size], [7, 'http://127.0.0.1:1/blob/x', url.byteLength]);
  const payload = Uint8Array.of(1, 2, 3);
  assert.equal(announced.withPayload(payload).payload, payload);
  new DataView(frame.buffer, frame.byteOffset).setUint32(12, 2, true);
  assert.throws(() => new Assembler().receive(frame), /not possible/);
});
