// The cases of test_javascript_generate.py: generations in a page without Python.
import { equal, fails } from './javascript_checks.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

export { env };

const PROMPT = [3, 1, 4, 1, 5];
const create = (kind, provider) => InferenceSession.create(`${kind}.pyort`, { executionProviders: [provider] });

/** Each receives a session, native onnxruntime's result for the prompt, and its beams. */
export const cases = {
  'tokens as they come': async (session, wanted) => {
    const told = [];
    const generation = session.generate(PROMPT, { maxNewTokens: 8, onTokens: (token) => told.push(token) });
    const found = [];
    for await (const token of generation) found.push(token);
    for (const tokens of [found, told, generation.tokens, await generation.result]) equal(tokens, wanted.slice(0, 8));
    equal([generation.finishReason, generation.info.reused], ['length', 0]);
    const again = session.generate(BigInt64Array.from(PROMPT, BigInt), { maxNewTokens: 8 });
    equal(await again.result, wanted.slice(0, 8));
    equal([again.info.reused], [PROMPT.length - 1]);
  },

  'a batch that ends row by row': async (session, wanted) => {
    const end = wanted[2];
    const rows = await session.generate([PROMPT, [7]], { maxNewTokens: 5, eos: [end] }).result;
    equal(rows[0], wanted.slice(0, wanted.indexOf(end) + 1));
    equal([rows.length], [2]);
  },

  'left and aborted': async (session, wanted) => {
    const left = session.generate(PROMPT, { maxNewTokens: 4000 });
    for await (const token of left) {
      equal([token], wanted.slice(0, 1));
      break;
    }
    await fails(() => left.result, 'abort');
    const ending = new AbortController();
    const aborted = session.generate(PROMPT, {
      maxNewTokens: 4000,
      signal: ending.signal,
      onTokens: () => ending.abort(),
    });
    await fails(() => aborted.result, 'abort');
    const thrower = session.generate(PROMPT, {
      maxNewTokens: 4000,
      onTokens: () => {
        throw new Error('enough (abort)');
      },
    });
    await fails(() => thrower.result, 'abort');
    equal(await session.generate(PROMPT, { maxNewTokens: 4 }).result, wanted.slice(0, 4));
  },

  'by beams': async (session, _, beams) => {
    const search = session.generate(PROMPT, { maxNewTokens: 6, numBeams: 3, numReturnSequences: 2, lengthPenalty: 0 });
    equal(await search.result, beams.tokens.slice(0, 2));
    equal([search.finishReason.length, search.info.scores.length], [2, 2]);
    search.info.scores.forEach((score, i) => {
      if (Math.abs(score - beams.scores[i]) > 1e-3) throw new Error(`${score}, not ${beams.scores[i]}`);
    });
    await fails(async () => {
      for await (const _ of session.generate(PROMPT, { numBeams: 2 }));
    }, 'await `result`');
    await fails(() => session.generate(PROMPT, { numBeams: 2, onTokens: () => undefined }), 'await `result`');
    await fails(() => session.generate(PROMPT, { numBeams: 2, sample: true }).result, 'draws no tokens');
    await fails(
      () => session.generate(PROMPT, { numBeams: 2, earlyStopping: 'soon' }).result,
      'true, false or "never"',
    );
  },

  'ended for a reason': async (session) => {
    const ending = new AbortController();
    const aborted = session.generate(PROMPT, { maxNewTokens: 4000, signal: ending.signal });
    await aborted.next();
    ending.abort(new Error('the reader left'));
    await fails(() => aborted.result, 'the reader left');
    let calls = 0;
    const onTokens = () => {
      calls++;
      throw new Error('nowhere to show it');
    };
    for (const maxNewTokens of [50, 1])
      await fails(() => session.generate(PROMPT, { maxNewTokens, onTokens }).result, 'nowhere to show it');
    equal([calls], [2]);
    await fails(() => session.generate(PROMPT, { onTokens: 1 }), 'onTokens is a function, not a number');
  },

  'what is wrong is told': async (session) => {
    await fails(() => session.generate([]), 'a prompt is an array of tokens');
    await fails(() => session.generate([1.5]), 'whole numbers');
    await fails(() => session.generate(PROMPT, { onLogits: 5 }), 'onLogits is a function, not a number');
    await fails(
      () => session.generate(PROMPT, { max_new_tokens: 3 }).result,
      'no option "max_new_tokens"; there are maxNewTokens',
    );
    await fails(
      () => session.generate(PROMPT, { names: { past: 'p' } }).result,
      'no option "names.past"; there are names.ids, names.mask',
    );
    await fails(() => session.generate(PROMPT, { temperature: 0 }).result, 'temperature is a number above 0');
    await fails(() => session.generate(PROMPT, { temperature: '1' }).result, 'temperature is a number above 0');
    await fails(() => session.generate(PROMPT, { topP: '0.5' }).result, 'topP is above 0');
    await fails(() => session.generate(PROMPT, { eos: '2' }).result, 'eos is a token, or an array of tokens, not 2');
    await fails(() => session.generate(PROMPT, { eos: -2 }).result, 'a token of eos or stop is a whole number');
    await fails(() => session.generate(PROMPT, { stop: [2] }).result, 'stop is an array of arrays of tokens');
    await fails(() => session.generate(PROMPT, { sample: true, numReturnSequences: 1e10 }), 'at most 65535 rows');
    await fails(async () => {
      for await (const _ of session.generate(PROMPT, { names: { ids: 'other' } }));
    }, 'input_ids');
  },

  'logits that a function changes': async (session, wanted) => {
    const seen = [];
    const look = (logits, tokens, row) => {
      seen.push([logits.indexOf(Math.max(...logits)), tokens.length, row]);
    };
    equal(await session.generate(PROMPT, { maxNewTokens: 4, onLogits: look }).result, wanted.slice(0, 4));
    equal(
      seen,
      wanted.slice(0, 4).map((token, i) => [token, i, 0]),
    );
    const inPlace = (logits, tokens) => {
      logits[tokens.length + 3] = 1000;
    };
    equal(await session.generate(PROMPT, { maxNewTokens: 3, onLogits: inPlace }).result, [3, 4, 5]);
    const others = async (logits, _, row) => Array.from(logits, (_, token) => Number(token === 7 + row));
    const rows = session.generate([PROMPT, PROMPT], { maxNewTokens: 2, onLogits: others });
    equal((await rows.result).flat(), [7, 7, 8, 8]);
    const fail = (_, tokens) => {
      if (tokens.length > 1) throw new Error('mine');
    };
    await fails(() => session.generate(PROMPT, { maxNewTokens: 9, onLogits: fail }).result, 'mine');
    await fails(() => session.generate(PROMPT, { onLogits: () => [1, 2] }).result, 'onLogits returned 2 logits');
    const ending = new AbortController();
    const never = () => new Promise(() => ending.abort(new Error('enough')));
    await fails(() => session.generate(PROMPT, { onLogits: never, signal: ending.signal }).result, 'enough');
    equal(await session.generate(PROMPT, { maxNewTokens: 4 }).result, wanted.slice(0, 4));
  },

  'a function for logits that uses its session': async (session, wanted) => {
    const within = (use) => session.generate(PROMPT, { maxNewTokens: 3, onLogits: use }).result;
    const own = 'onLogits cannot generate with its own session';
    await fails(() => within(() => session.generate([1], { maxNewTokens: 1 }).result.then(() => undefined)), own);
    await fails(() => within(async () => void (await session.generate([1], { maxNewTokens: 1 }).result)), own);
    equal(await within(() => undefined), wanted.slice(0, 3));
    // Others may wait for the generation before.
    const [one, other] = [within(async () => undefined), within(async () => undefined)];
    equal([await one, await other], [wanted.slice(0, 3), wanted.slice(0, 3)]);
    // A run does not wait for the generation: this one has no feeds.
    await fails(() => within(async () => void (await session.run({}))), 'no feed for the input');
    equal(await session.generate(PROMPT, { maxNewTokens: 3, eos: wanted[1] }).result, wanted.slice(0, 2));
    await fails(() => within(() => session.release()), 'this session was released');
  },

  'aborted before its turn': async (session, wanted) => {
    let go;
    const held = new Promise((resolve) => (go = resolve));
    const first = session.generate(PROMPT, { maxNewTokens: 2, onLogits: () => held.then(() => undefined) });
    const [ending, cancelled] = [new AbortController(), session.generate([1], { maxNewTokens: 1 })];
    const begun = [];
    const options = { maxNewTokens: 1, signal: ending.signal, onTokens: (token) => begun.push(token) };
    const queued = session.generate([1], options);
    const last = session.generate(PROMPT, { maxNewTokens: 3 });
    ending.abort(new Error('enough'));
    cancelled.cancel();
    await fails(() => queued.result, 'enough');
    await fails(() => cancelled.result, 'abort');
    await fails(() => session.generate([1], { signal: AbortSignal.abort(new Error('late')) }).result, 'late');
    equal([first.tokens.length, last.tokens.length], [0, 0]);
    go();
    equal(await first.result, wanted.slice(0, 2));
    equal(await last.result, wanted.slice(0, 3));
    equal(begun, []);
    // One that a function for logits waits for.
    const inner = new AbortController();
    const waits = async () => {
      await Promise.resolve();
      const other = session.generate([1], { maxNewTokens: 1, signal: inner.signal });
      inner.abort(new Error('inner'));
      await other.result;
    };
    await fails(() => session.generate(PROMPT, { onLogits: waits }).result, 'inner');
    equal(await session.generate(PROMPT, { maxNewTokens: 3 }).result, wanted.slice(0, 3));
  },

  'a mask, and JSON': async (session, wanted) => {
    await fails(() => session.generate(PROMPT, { mask: new Array(48).fill(0) }).result, 'mask bars all tokens');
    const mask = new Uint8Array(48).fill(1);
    mask[wanted[0]] = 0;
    const [other] = await session.generate(PROMPT, { maxNewTokens: 1, mask }).result;
    if (other === wanted[0]) throw new Error('a token that was barred');
    const words = ['{', '}', '[', ']', '"', 'a', ':', ',', '1', 'true', ' ', '-'];
    const jsonVocabulary = Array.from({ length: 48 }, (_, i) => words[i] ?? '');
    const options = { jsonVocabulary, eos: [40], sample: true, temperature: 9, maxNewTokens: 300 };
    for (let seed = 0; seed < 4; seed++) {
      const generation = session.generate(PROMPT, { ...options, seed });
      const text = (await generation.result).map((token) => jsonVocabulary[token]).join('');
      if (generation.finishReason === 'eos') JSON.parse(text);
    }
    await fails(() => session.generate(PROMPT, { jsonVocabulary }).result, 'jsonVocabulary needs eos');
    await fails(() => session.generate(PROMPT, { jsonVocabulary: [1], eos: [2] }).result, 'the text of each token');
    await fails(() => session.generate(PROMPT, { mask: 3 }).result, 'mask is an array');
    const dead = { jsonVocabulary: ['{'], eos: 40 };
    await fails(
      () => session.generate(PROMPT, dead).result,
      'step 2 has no token to choose: jsonVocabulary .* has none that JSON allows after "[{]"',
    );
    await fails(
      () => session.generate(PROMPT, { ...dead, onLogits: (logits) => logits.fill(-Infinity) }).result,
      'step 1 has no token to choose: those of jsonVocabulary .* that JSON allows have no logit',
    );
  },

  'drawn by a seed': async (session) => {
    const draw = (seed) =>
      session.generate(PROMPT, { maxNewTokens: 6, sample: true, temperature: 3, topK: 20, topP: 0.9, seed }).result;
    const [first, again, other] = [await draw(7), await draw(7), await draw(8)];
    equal(first, again);
    if (String(first) === String(other)) throw new Error('two seeds, the same draws');
  },
};

/** The page's own loop, which feeds the caches left on the GPU: all later steps are replays. */
export async function loop(kind, wanted) {
  const names = [0, 1].flatMap((layer) => ['key', 'value'].map((part) => `${layer}.${part}`));
  const session = await InferenceSession.create(`${kind}.pyort`, {
    executionProviders: ['webgpu'],
    preferredOutputLocation: Object.fromEntries(names.map((name) => [`present.${name}`, 'gpu-buffer'])),
  });
  const integers = (numbers) => new Tensor('int64', BigInt64Array.from(numbers, BigInt), [1, numbers.length]);
  const empty = new Tensor('float32', new Float32Array(0), [1, kind === 'growing' ? 4 : 2, 0, 16]);
  let caches = names.map(() => empty);
  let rows = PROMPT;
  const [found, places, walked] = [[], [], []];
  while (found.length < wanted.length) {
    const own = rows.map((_, i) => places.length + i);
    places.push(...own);
    const feeds = { input_ids: integers(rows), attention_mask: integers(places.map(() => 1)) };
    if (kind === 'growing') feeds.position_ids = integers(own);
    for (const [i, name] of names.entries()) feeds[`past_key_values.${name}`] = caches[i];
    const outputs = await session.run(feeds);
    const { walks, bind_groups } = session.lastRun.counters;
    walked.push(walks + bind_groups);
    for (const cache of caches) if (cache !== empty) cache.dispose();
    caches = names.map((name) => outputs[`present.${name}`]);
    const scores = outputs.logits.data.slice(-48);
    rows = [scores.indexOf(Math.max(...scores))];
    found.push(...rows);
  }
  equal(found, wanted);
  equal(
    walked.slice(2),
    wanted.slice(2).map(() => 0),
  );
  await session.release();
}

export async function run(name, kind, provider, wanted, beams) {
  const session = await create(kind, provider);
  try {
    await cases[name](session, wanted, beams);
  } finally {
    await session.release();
  }
}
