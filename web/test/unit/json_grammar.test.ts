import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BEGINNING, behindText, isWhole, JsonMasks } from '../../src/generate/json_grammar';

const NUMBERS = '0 -0 12 -3.25 1e9 1E-07 0.5e+10'.split(' ');
const VALUES = 'true|false|null|""|[]|{}| [ ] |[1,2,[3,{"a":[]}],"x"]|{"a":1,"b":{"c":null},"":[true]}'.split('|');
const STRINGS = [String.raw`"a\"b\\\/\b\f\n\r\t\u00e4"`, '"ä€😀\u007f"', '\n{\t}\r'];
const WHOLE = [...NUMBERS, ...VALUES, ...STRINGS];
const BROKEN = [
  ...'01 +1 .5 1. 1.e5 1e --1 tru True nul1 NaN [1,] [,1] {"a"} {"a":} {a:1} {"a":1,} {1:2} [} {] []] "a""b" ,'.split(
    ' ',
  ),
  ...["'a'", '"\n"', String.raw`"\x"`, String.raw`"\u12g4"`, '[1 2]', '1 2'],
];

for (const text of WHOLE)
  test(`json: ${JSON.stringify(text)} is whole`, () => {
    JSON.parse(text);
    const place = behindText(BEGINNING, text);
    assert.ok(place && isWhole(place));
  });

for (const text of BROKEN)
  test(`json: ${JSON.stringify(text)} is none`, () => {
    assert.throws(() => JSON.parse(text));
    const place = behindText(BEGINNING, text);
    assert.ok(!place || !isWhole(place));
  });

test('json: the beginnings of a text are places, and no other text is', () => {
  const letters = Array.from('{}[]":,-01.eEtrue \\nu/a');
  let random = 1;
  const next = () => (random = (random * 48271) % 0x7fffffff);
  for (let i = 0; i < 3000; i++) {
    const text = Array.from({ length: (next() % 9) + 1 }, () => letters[next() % letters.length]).join('');
    const place = behindText(BEGINNING, text);
    let whole = true;
    try {
      JSON.parse(text);
    } catch {
      whole = false;
    }
    assert.equal(!!place && isWhole(place), whole, text);
  }
});

test('json: blanks come to an end', () => {
  assert.ok(behindText(BEGINNING, ' '.repeat(32)));
  assert.equal(behindText(BEGINNING, ' '.repeat(33)), undefined);
});

test('json: masks', () => {
  const vocabulary = ['{"', '"', 'a":', '}', '', '1}', 'x', '{}'];
  const masks = new JsonMasks(vocabulary, [4]);
  const allowed = (...tokens: number[]) => vocabulary.map((_, i) => i).filter((i) => masks.behind(tokens)[i]);
  assert.deepEqual(allowed(), [0, 1, 7]);
  assert.deepEqual(allowed(0), [0, 1, 2, 3, 5, 6, 7]);
  assert.deepEqual(allowed(0, 2), [0, 1, 5, 7]);
  assert.deepEqual(allowed(0, 2, 5), [4]);
  assert.deepEqual(allowed(7), [4]);
  assert.deepEqual(allowed(3), []);
});
