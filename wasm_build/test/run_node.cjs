// Runs plans on the CPU provider, in Node: node run_node.cjs FOLDER...
//
// A folder has plan.bin, weights.bin, feeds.bin and run.json: {weights: [{index, offset, size}], outputs: count,
// feeds: [{input, dtype, dims, offset, size} or {input, kind, dtype}: a container for what follows], repeat?: times}.
// It gets outputs.bin and outputs.json: {ms: [per repetition], values: [value]}, a value being {dtype, dims, offset,
// size} or {kind, items: [value]}; or {error: fields of ort_last_error}. one_node.py writes and reads all this.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { Core, CoreError } = require('./core.cjs');

async function runFolder(core, folder) {
  const read = (name) => new Uint8Array(fs.readFileSync(path.join(folder, name)));
  const job = JSON.parse(fs.readFileSync(path.join(folder, 'run.json'), 'utf8'));
  const chunks = [];
  let size = 0;
  const described = (value) => {
    if (value.items) return { kind: value.kind, items: value.items.map(described) };
    const entry = { dtype: value.dtype, dims: value.dims, offset: size, size: value.bytes.length };
    chunks.push(value.bytes);
    size += value.bytes.length;
    return entry;
  };

  const session = core.session(read('plan.bin'), job.weights, read('weights.bin'));
  const bytes = read('feeds.bin');
  const ms = [];
  let values = [];
  for (let i = 0; i < (job.repeat ?? 1); i++) {
    const run = core.begin(session);
    try {
      for (const feed of job.feeds) {
        if (feed.kind) core.feedContainer(run, feed.input, feed.kind, feed.dtype);
        else core.feed(run, feed.input, feed.dtype, feed.dims, bytes.subarray(feed.offset, feed.offset + feed.size));
      }
      const start = performance.now();
      await core.execute(run);
      ms.push(performance.now() - start);
      if (i === 0) values = Array.from({ length: job.outputs }, (_, output) => described(core.output(run, output)));
    } finally {
      core.module._ort_run_end(run);
    }
  }
  core.module._ort_session_release(session);
  fs.writeFileSync(path.join(folder, 'outputs.bin'), Buffer.concat(chunks));
  return { ms, values };
}

async function main(folders) {
  let core;
  for (const folder of folders) {
    let answer;
    core ??= await Core.load();
    try {
      answer = await runFolder(core, folder);
    } catch (error) {
      // A trap leaves the heap as it was in the middle of it: the next folder gets a new core.
      if (!(error instanceof CoreError)) core = undefined;
      answer = {
        error: error.fields ?? {
          code: 1,
          message: `the core crashed: ${error.stack}`,
          node: '',
          op_type: '',
          provider: '',
        },
      };
    }
    fs.writeFileSync(path.join(folder, 'outputs.json'), JSON.stringify(answer));
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
