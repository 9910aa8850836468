// Cases of javascript_api.mjs: files with correct checksums, and wrong headers or plans. tests/fuzz/mutated_files.py
// runs more of them.
import { equal, fails, near } from './javascript_checks.mjs';
import { create } from './javascript_parts.mjs';
import { InferenceSession, Tensor } from './py_ort.mjs';

function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  }
  return ~sum >>> 0;
}

/**
 * A .pyort file with another header and correct checksums.
 *
 * @param change receives the header, and a function that appends a content and returns its offset.
 */
function forged(bytes, change) {
  const start = 16 + new DataView(bytes.buffer).getUint32(8, true);
  let header = JSON.parse(new TextDecoder().decode(bytes.subarray(16, start)));
  const data = [bytes.subarray(start)];
  const add = (content) => {
    const offset = header.size;
    header.checksums.push([offset, crc32(content)]);
    data.push(content, new Uint8Array(-content.length & 63));
    header.size += content.length + (-content.length & 63);
    return offset;
  };
  header = change(header, add) ?? header;
  let text = JSON.stringify(header);
  text += ' '.repeat(-(16 + new TextEncoder().encode(text).length) & 63);
  const told = new TextEncoder().encode(text);
  const prefix = new DataView(bytes.slice(0, 16).buffer);
  prefix.setUint32(8, told.length, true);
  prefix.setUint32(12, crc32(told), true);
  return new Blob([prefix, told, ...data]);
}

/** Draws numbers below `count`, different for each seed. */
function drawing(seed) {
  let state = seed * 2654435761;
  return (count) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

/** Replaces a random part of the plain data of a header. */
function mutateHeader(data, draw) {
  const places = [];
  const walk = (within) => {
    for (const key of Object.keys(within)) {
      places.push([within, key]);
      if (typeof within[key] === 'object' && within[key]) walk(within[key]);
    }
  };
  walk({ data });
  const [within, key] = places[1 + draw(places.length - 1)];
  const old = within[key];
  const others = [null, true, -1, 0, 0.5, 7, 2 ** 53, 1e300, 'x', '', [], {}, [[]], [1, 2, 3], old + 64, -old, [old]];
  const drawn = draw(others.length + 1);
  if (drawn < others.length) within[key] = others[drawn];
  else delete within[key];
}

/** Another plan, with up to three changed bits, bytes or words. */
function mutatedPlan(plan, draw) {
  const made = plan.slice();
  const words = new DataView(made.buffer);
  for (let left = 1 + draw(3); left > 0; left--) {
    const at = draw(made.length);
    const word = Math.min(at & ~3, made.length - 4);
    const [old, another] = [words.getInt32(word, true), words.getInt32(draw(word + 1), true)];
    const others = [0, 1, -1, 0x7fffffff, 1 << 16, old + 4, another];
    const drawn = draw(others.length + 2);
    if (drawn < others.length) words.setInt32(word, others[drawn], true);
    else made[at] = drawn === others.length ? made[at] ^ (1 << draw(8)) : draw(256);
  }
  return made;
}

const MUTATED = {
  headers: ({ header, draw }) => mutateHeader(header, draw),
  plans: ({ header, add, data, draw }) => {
    for (const plan of header.plans)
      plan.offset = add(mutatedPlan(data.slice(plan.offset, plan.offset + plan.size), draw));
  },
};
/** Possible ends of a damaged file: these errors, or the signal if its plan has become an endless loop. */
const CODES = 'invalid_graph|invalid_argument|not_implemented|no_adapter|runtime_exception|out_of_memory';
const KINDS = new RegExp(`^(RuntimeError\\((${CODES})\\)|AbortError|TimeoutError)$`);
const PATIENCE_MS = 30_000;

/**
 * Makes and runs sessions of damaged files, together with one of the intact file, whose results may not change.
 *
 * @param kind a key of MUTATED.
 * @param model the stem of a file and of the JSON with its feeds and outputs.
 * @returns the numbers of refused and of successful ones, and failures by seed; a file that never ends is the last one.
 */
export async function mutants(kind, seeds, model, executionProviders) {
  const bytes = new Uint8Array(await (await fetch(`${model}.pyort`)).arrayBuffer());
  const { dims, x, y } = await (await fetch(`${model}.json`)).json();
  const feeds = { x: new Tensor('float32', x, dims) };
  const bystander = await create(model, { executionProviders });
  const told = { refused: 0, ran: 0, faults: [] };
  const [, wanted] = [await bystander.run(feeds), (await bystander.run(feeds)).y.data.slice()];
  near(wanted, y, 1e-3);
  const late = (text) =>
    new Promise((_, reject) => setTimeout(() => reject(new Error(`${text} never ends`)), PATIENCE_MS));
  for (const seed of seeds) {
    const draw = drawing(seed);
    const data = bytes.subarray(16 + new DataView(bytes.buffer).getUint32(8, true));
    const given = forged(bytes, (header, add) => MUTATED[kind]({ header, add, data, draw }));
    let made;
    try {
      made = await Promise.race([InferenceSession.create(given, { executionProviders }), late('its creation')]);
      await Promise.race([made.run(feeds, { signal: AbortSignal.timeout(PATIENCE_MS / 3) }), late('its run')]);
      told.ran++;
    } catch (error) {
      if (KINDS.test(error.name)) told.refused++;
      else told.faults.push({ seed, text: `${error.name}: ${error.message}`, over: /never ends$/.test(error.message) });
    }
    if (told.faults.at(-1)?.over) return told;
    await made?.release();
    try {
      equal((await bystander.run(feeds)).y.data, wanted);
    } catch (error) {
      told.faults.push({ seed, text: `the session beside it: ${error.name}: ${error.message}`, over: true });
      return told;
    }
  }
  await bystander.release();
  return told;
}

export const cases = {
  'headers of strangers': async () => {
    const bytes = new Uint8Array(await (await fetch('integer_products.pyort')).arrayBuffer());
    /** Moves each plan's largest weight of the form elsewhere, with this number of bytes and another form. */
    const elsewhere = (of, size, form) => (header, add) => {
      for (const { weights } of header.plans) {
        const places = weights.filter((place) => of === undefined || place[2] === of);
        const most = places.reduce((a, b) => (b[1] > a[1] ? b : a), places[0]);
        if (most)
          weights[weights.indexOf(most)] = [
            add(new Uint8Array(size ?? most[1]).fill(77)),
            size ?? most[1],
            ...form(most),
          ];
      }
    };
    const unfit = 'cannot be made of .* bytes in form';
    const wrong = {
      'is damaged: its header is not': [
        (header) => void delete header.inputs,
        (header) => void (header.plans[0].weights = 5),
        (header) => void (header.plans[0].weights[0][1] = 0.5),
        (header) => void (header.plans[0].placement = [0]),
        (header) => void (header.checksums = null),
      ],
      'is damaged: something in it': [
        (header) => void (header.plans[0].offset = 2 ** 40),
        (header) => void (header.plans[0].weights.find(([offset]) => offset > 0)[0] += 4),
      ],
      'weight .* of .* bytes has .* in the file, which is damaged': [
        elsewhere(undefined, 4_000_000, () => [0]),
        elsewhere(undefined, 16, () => [0]),
        (header) => header.plans.forEach(({ weights }) => weights.pop()),
      ],
      [unfit]: [
        elsewhere(undefined, 64, () => [1]),
        elsewhere(undefined, undefined, () => [3]),
        elsewhere(undefined, undefined, () => [3, 0]),
        elsewhere(undefined, undefined, () => [9]),
      ],
      'the model is cut off: it ended after': [
        (header) => {
          header.size = 2 ** 50;
          for (const plan of header.plans) header.checksums.push([(plan.offset = 2 ** 40), 7]);
        },
      ],
      'it has format 1 .*py-ort export': [
        (header) => {
          header.version = 1;
          delete header.checksums;
        },
      ],
    };
    for (const [words, changes] of Object.entries(wrong))
      for (const change of changes)
        for (const executionProviders of [['wasm'], ['webgpu']])
          await fails(() => InferenceSession.create(forged(bytes, change), { executionProviders }), words);
    for (const form of [[], [0, 0, 0], [0, 9, 0], [5, 0, 0], [5, 8, 0], [90, 9, 0]]) {
      const given = forged(
        bytes,
        elsewhere(4, undefined, () => [4, ...form]),
      );
      await fails(() => InferenceSession.create(given, { executionProviders: ['wasm'] }), unfit);
    }
  },

  'mutants of headers and plans': async () => {
    const seeds = Array.from({ length: 60 }, (_, seed) => seed);
    for (const [kind, model, provider] of [
      ['headers', 'integer_products', 'wasm'],
      ['plans', 'integer_products', 'wasm'],
      ['plans', 'windows', 'wasm'],
      ['plans', 'windows', 'webgpu'],
    ]) {
      const { faults, ran } = await mutants(kind, provider === 'wasm' ? seeds : seeds.slice(0, 12), model, [provider]);
      if (faults.length > 0) throw new Error(`${kind} of ${model} on ${provider}: ${JSON.stringify(faults)}`);
      if (ran === 0) throw new Error(`none of the ${kind} of ${model} ran on ${provider}`);
    }
  },

  'parts beside a file, whatever it is called': async () => {
    await (await InferenceSession.create(encodeURIComponent('100% #1?.pyort'))).release();
    const bytes = new Uint8Array(await (await fetch('add.pyort')).arrayBuffer());
    for (const name of ['..', '../add.pyort', '/add.pyort', 'a\\b', ''])
      await fails(
        () => InferenceSession.create(forged(bytes, (header) => void header.parts.push({ name, size: 0 }))),
        'are not said to lie beside it',
      );
  },

  'a file that claims the weights of another': async () => {
    const bytes = new Uint8Array(await (await fetch('integer_products.pyort')).arrayBuffer());
    const { dims, x, y } = await (await fetch('integer_products.json')).json();
    const feeds = { x: new Tensor('float32', x, dims) };
    const claiming = forged(bytes, (header, add) => {
      for (const { weights } of header.plans)
        for (const place of weights) if (place[1] > 64) place[0] = add(new Uint8Array(place[1]).fill(77));
    });
    const close = (a, b) => [...a].every((value, i) => Math.abs(value - b[i]) <= 1e-3 * (1 + Math.abs(b[i])));
    for (const executionProviders of [['wasm'], ['webgpu']])
      for (const models of [
        ['integer_products.pyort', claiming],
        [claiming, 'integer_products.pyort'],
      ]) {
        const sessions = [];
        for (const model of models) sessions.push(await InferenceSession.create(model, { executionProviders }));
        for (const [i, model] of models.entries())
          if (close((await sessions[i].run(feeds)).y.data, y) !== (model !== claiming))
            throw new Error(`${executionProviders}: not the weights of ${model}`);
        for (const session of sessions) await session.release();
      }
  },
};
