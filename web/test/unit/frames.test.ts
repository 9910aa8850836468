import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Assembler, FRAME_SIZE, frames, ProtocolError } from '../../src/wire/frames';

function bytes(count: number, seed: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => (i * 31 + seed) & 255);
}

function roundTrip(header: Uint8Array, parts: Uint8Array[]) {
  const assembler = new Assembler();
  const sent = [...frames(header, parts)];
  const received = sent.map((frame) => assembler.receive(frame));
  assert.ok(
    sent.every((frame) => frame.byteLength <= FRAME_SIZE),
    'no frame is too large',
  );
  assert.ok(
    received.slice(0, -1).every((message) => message === undefined),
    'only the last frame completes the message',
  );
  return { ...received[received.length - 1]!, count: sent.length };
}

for (const sizes of [
  [],
  [0],
  [1, 17, 0, 16],
  [FRAME_SIZE],
  [3 * FRAME_SIZE + 5, 3],
  Array.from({ length: 40 }, () => 60_001),
]) {
  const sizesText = sizes.length > 5 ? `${sizes.length} x ${sizes[0]}` : sizes;
  test(`frames: parts of ${sizesText} bytes come back, each at a multiple of 16`, () => {
    const header = bytes(45, 7);
    const parts = sizes.map(bytes);
    const { header: gotHeader, payload } = roundTrip(header, parts);
    assert.deepEqual(gotHeader, header);
    assert.equal(payload.byteOffset % 16, 0);
    let at = 0;
    for (const part of parts) {
      assert.deepEqual(payload.slice(at, at + part.byteLength), part);
      at = Math.ceil((at + part.byteLength) / 16) * 16;
    }
    assert.equal(payload.byteLength, at);
  });
}

test('frames: small parts travel in one frame', () => {
  assert.equal(roundTrip(bytes(40, 0), [bytes(10, 1), bytes(20, 2)]).count, 1);
});

test('frames: two messages follow each other', () => {
  const assembler = new Assembler();
  for (const seed of [1, 2]) {
    const [frame] = frames(bytes(32, seed), [bytes(8, seed)]);
    assert.deepEqual(assembler.receive(frame)!.header, bytes(32, seed));
  }
});

test('frames: nonsense is refused', () => {
  assert.throws(() => new Assembler().receive(new Uint8Array(8)), ProtocolError);
  assert.throws(() => new Assembler().receive(new Uint8Array(32)), ProtocolError);
  const [frame] = frames(bytes(32, 0), []);
  const longer = new Uint8Array(frame.byteLength + 16);
  longer.set(frame);
  assert.throws(() => new Assembler().receive(longer), ProtocolError);
});
