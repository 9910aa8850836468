import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ticks, timeText } from '../../src/report/ticks';

test('there are several ticks, round and within the range, however far one zooms', () => {
  for (let length = 0.5; length < 1e9; length *= 3.7) {
    for (const from of [0, 123.4, 98765.4]) {
      const found = ticks(from, from + length, 10);
      assert.ok(found.length >= 3 && found.length <= 11, `${found.length} of ${length}`);
      assert.ok(found.every((time) => time >= from && time <= from + length));
      assert.equal(new Set(found.map((time) => timeText(time, found[1]! - found[0]!))).size, found.length);
    }
  }
});

test('times', () => {
  assert.equal(timeText(1.25), '1.3 µs');
  assert.equal(timeText(2500), '2.500 ms');
  assert.equal(timeText(20_200_000, 200_000), '20.2 s');
  assert.equal(timeText(0, 500), '0 µs');
});
