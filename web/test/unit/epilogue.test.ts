import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  epilogueText,
  programOf,
  readsResidual,
  recognized,
  residualFirst,
  shared,
} from '../../src/providers/webgpu/wgsl/epilogue';
import { parse } from '../../src/providers/webgpu/wgsl/program';

test('a form is the program that says it', () => {
  for (const text of [
    'Add 0 1',
    'Relu 0',
    'Relu 0;Add 2 1',
    'Add 0 1;Relu 2',
    'HardSwish 0;Number #0.5;Add 2 3',
    'Swish 0 #1.5;Number #-0.25;Add 2 3;Add 4 1',
    'Add 0 1;Clip 2 #0.0 #6.0;Number #1.0;Add 3 4',
    'Number #1.0;Add 0 2;Add 3 1',
  ]) {
    const program = parse(text);
    const form = recognized(program);
    assert.ok(form, text);
    assert.deepEqual(programOf(form).numbers, program.numbers, text);
    assert.deepEqual(recognized(programOf(form)), form, text);
  }
});

test('other programs are not recognized', () => {
  for (const text of [
    'Relu 0;Sigmoid 2',
    'Relu 0;Add 2 1;Sigmoid 3',
    'Add 0 1;Relu 2;Add 3 1',
    'Relu 0;Sigmoid 0',
    'Relu 1',
    'Mul 0 1',
    'Relu 0;Number #1.0',
    'Nonsense 0',
  ])
    assert.equal(recognized(parse(text)), undefined, text);
});

test('a residual comes before what is there', () => {
  assert.deepEqual(
    residualFirst(parse('Swish 0 #1.5;Number #2.0;Add 2 3')),
    parse('Add 0 1;Swish 2 #1.5;Number #2.0;Add 3 4'),
  );
  assert.deepEqual(residualFirst(undefined), parse('Add 0 1'));
});

test('what is made of a product and a clamp shares one program', () => {
  const programs = [
    undefined,
    'Relu 0',
    'Add 0 1;HardSwish 2',
    'Clip 0 #-1.0 #1.0',
    'HardSigmoid 0 #0.2 #0.5',
    'Add 0 1',
  ];
  const made = programs.map((text) => shared(text === undefined ? undefined : parse(text)));
  for (const { instructions, numbers } of made) {
    assert.deepEqual(instructions, made[0].instructions);
    assert.equal(numbers.length, 5);
  }
  // A residual after it is different, and so is its own function; a program of another form stays.
  assert.notDeepEqual(shared(parse('Relu 0;Add 2 1')).instructions, made[0].instructions);
  assert.ok(readsResidual(shared(parse('Sigmoid 0')).instructions));
  assert.deepEqual(shared(parse('Relu 0;Sigmoid 2')), parse('Relu 0;Sigmoid 2'));
});

test('any program is text', () => {
  const text = epilogueText(parse('Relu 0;Add 2 1;Swish 3 #1.5').instructions, 4);
  assert.match(text, /fn epilogue\(x0: vec4<f32>, x1: vec4<f32>\) -> vec4<f32>/);
  assert.match(text, /scalar_swish\(r3, u\.number_0\)/);
  assert.doesNotMatch(epilogueText(parse('Relu 0').instructions, 1), /x1/);
});
