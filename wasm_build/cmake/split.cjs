// Moves the functions of rare kernels from core.wasm into rare_kernels.wasm, which fills their places in the core's
// table:
//   node split.cjs FOLDER BINARYEN READOBJ
// FOLDER has core.wasm with names, objects.txt (all objects of the core) and rare.txt (the sources of rare kernels);
// BINARYEN is the folder of wasm-opt and wasm-split, READOBJ is llvm-readobj.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { execFileSync } = require('node:child_process');

const [folder, binaryen, readobj] = process.argv.slice(2);
const FEATURES = 'simd bulk-memory sign-ext mutable-globals nontrapping-float-to-int exception-handling'.split(' ');
const run = (tool, ...args) => execFileSync(tool, args, { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 });
const binaryenTool = (name, ...args) =>
  run(path.join(binaryen, name), ...FEATURES.map((each) => `--enable-${each}`), 'core.wasm', ...args);
const lines = (name) => fs.readFileSync(path.join(folder, name), 'utf8').split('\n').filter(Boolean);

/** The functions that objects define, and those whose place in the table they read. */
function symbolsOf(objects) {
  const text = run(readobj, '--symbols', '--relocs', ...objects);
  const symbols = [...text.matchAll(/Symbol \{\s+Name: (\S+)\s+Type: FUNCTION \(0x0\)\s+Flags \[([^\]]*)\]/g)];
  const defined = symbols.filter(([, , flags]) => !flags.includes('UNDEFINED')).map(([, name]) => name);
  const pointed = [...text.matchAll(/ R_WASM_TABLE_INDEX_\w+ (\S+)/g)].map(([, name]) => name);
  return { defined: new Set(defined), pointed: new Set(pointed) };
}

/** Functions with their callers, those that are exported or imported, and how often each is in the table. */
function callGraph() {
  const graph = { callers: new Map(), outside: new Set(), places: new Map() };
  for (const line of binaryenTool('wasm-opt', '--print-call-graph').split('\n')) {
    const [, name, callee, style] = /^ {2}"([^"]+)"(?: -> "([^"]+)")? ?\[?(.*?)\]?;/.exec(line) ?? [];
    if (name === undefined) continue;
    if (callee !== undefined) graph.callers.get(callee)?.add(name);
    else if (style.includes('gray') || style.includes('turquoise')) graph.outside.add(name);
    else if (style.includes('fillcolor')) graph.callers.set(name, new Set());
    else graph.places.set(name, (graph.places.get(name) ?? 0) + 1);
  }
  return graph;
}

/** The symbol of a function. Binaryen numbers equal names, and names the merged form of similar functions by one. */
const symbolOf = (name, known) => {
  const plain = name.replace(/^byn\$mgfn-shared\$/, '');
  return known.has(plain) ? plain : plain.replace(/_\d+$/, '');
};

/**
 * The functions to move: those of rare kernels, and those that only they call. Binaryen makes one function of several
 * that are equal, of which one may be of another kernel. So a function stays if the rest of the core calls it, if the
 * table has it more than once, or if the table has it though no rare kernel reads its place there.
 */
function moved({ callers, outside, places }) {
  const [sources, objects] = [lines('rare.txt'), lines('objects.txt')];
  const isRare = (object) => sources.some((source) => object.includes(`/${source}.`));
  const [rare, common] = [symbolsOf(objects.filter(isRare)), symbolsOf(objects.filter((each) => !isRare(each)))];
  const own = new Set([...rare.defined].filter((symbol) => !common.defined.has(symbol)));
  const isMovable = (name) => {
    const symbol = symbolOf(name, own);
    const inTable = places.get(name) ?? 0;
    const isStart = /^(_GLOBAL__sub_I_|__cxx_global_|__wasm_)/.test(name);
    const isRareInTable = inTable === 1 && rare.pointed.has(symbol) && !common.pointed.has(symbol);
    return own.has(symbol) && !isStart && (inTable === 0 || isRareInTable);
  };
  const found = new Set([...callers.keys()].filter(isMovable));
  const onlyByFound = (name) => [...callers.get(name)].every((caller) => found.has(caller));
  for (let changed = true; changed; ) {
    changed = false;
    for (const [name, { size }] of callers) {
      const moves = !outside.has(name) && onlyByFound(name) && (found.has(name) || (size > 0 && !places.has(name)));
      if (moves === found.has(name)) continue;
      changed = true;
      if (moves) found.add(name);
      else found.delete(name);
    }
  }
  return [...found];
}

const names = moved(callGraph());
if (names.length === 0) throw new Error('no function of a rare kernel is found in core.wasm: are its names there?');
fs.writeFileSync(path.join(folder, 'moved.txt'), names.join('\n'));
const outputs = ['-o1', 'core.split.wasm', '-o2', 'rare_kernels.wasm'];
binaryenTool('wasm-split', '--split-funcs', '@moved.txt', '--export-prefix=%', ...outputs);
fs.renameSync(path.join(folder, 'core.split.wasm'), path.join(folder, 'core.wasm'));
