// Runs plans on the CPU provider, in Node: node run_node.cjs FOLDER
//
// The folder has jobs.json, a list: {sizes: {plan, weights, feeds}: bytes in jobs.bin, one after the other, weights:
// [{index, offset, size}], outputs: count, feeds: [{input, dtype, dims, offset, size} or {input, kind, dtype}: a
// container of the following feeds], repeat?: times, left?: free bytes of a small memory while it runs}. Written are
// outputs.bin and outputs.json, a list: {ms: [per repetition], values: [value]}, a value being {dtype, dims, offset,
// size} or {kind, items: [value]}; or {error: fields of ort_last_error}; with `left` also taken: bytes of the memory
// that were not free. one_node.py writes and reads all this.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { Core, CoreError } = require('./core.cjs');

/** Megabytes of the memory in which jobs with `left` have that many free bytes. */
const SMALL = 64;

// The results of all jobs, in order.
class Outputs {
  chunks = [];
  size = 0;
  described(value) {
    if (value.items) return { kind: value.kind, items: value.items.map((item) => this.described(item)) };
    const entry = { dtype: value.dtype, dims: value.dims, offset: this.size, size: value.bytes.length };
    this.chunks.push(value.bytes);
    this.size += value.bytes.length;
    return entry;
  }
}

async function runJob(core, job, parts, outputs) {
  const session = core.session(parts.plan, job.weights, parts.weights);
  const bytes = parts.feeds;
  const ms = [];
  let values = [];
  for (let i = 0; i < (job.repeat ?? 1); i++) {
    const run = core.begin(session);
    try {
      for (const feed of job.feeds) {
        if (feed.kind) core.feedContainer(run, feed.input, feed.kind, feed.dtype);
        else core.feed(run, feed.input, feed.dtype, feed.dims, bytes.subarray(feed.offset, feed.offset + feed.size));
      }
      const filled = job.left === undefined ? undefined : core.fill(job.left);
      job.taken = filled?.taken;
      const start = performance.now();
      try {
        await core.execute(run);
      } finally {
        filled?.release();
      }
      ms.push(performance.now() - start);
      if (i === 0)
        values = Array.from({ length: job.outputs }, (_, output) => outputs.described(core.output(run, output)));
    } catch (error) {
      core.module._ort_run_end(run);
      core.module._ort_session_release(session);
      throw error;
    }
    core.module._ort_run_end(run);
  }
  core.module._ort_session_release(session);
  return { ms, values };
}

async function main(folder) {
  const data = new Uint8Array(fs.readFileSync(path.join(folder, 'jobs.bin')));
  const outputs = new Outputs();
  const answers = [];
  let core;
  let at = 0;
  for (const job of JSON.parse(fs.readFileSync(path.join(folder, 'jobs.json'), 'utf8'))) {
    const parts = {};
    for (const name of ['plan', 'weights', 'feeds']) {
      parts[name] = data.subarray(at, at + job.sizes[name]);
      at += job.sizes[name];
    }
    if (core?.hasRareKernels) core = undefined; // other jobs run without, as in most pages
    core ??= await Core.load(job.left === undefined ? undefined : SMALL);
    try {
      answers.push({ ...(await runJob(core, job, parts, outputs)), taken: job.taken });
    } catch (error) {
      // A trap leaves the heap in an undefined state: the next job gets a new core.
      if (!(error instanceof CoreError)) core = undefined;
      answers.push({
        taken: job.taken,
        error: error.fields ?? {
          code: 1,
          message: `the core crashed: ${error.stack}`,
          node: '',
          op_type: '',
          provider: '',
        },
      });
    }
  }
  fs.writeFileSync(path.join(folder, 'outputs.bin'), Buffer.concat(outputs.chunks));
  fs.writeFileSync(path.join(folder, 'outputs.json'), JSON.stringify(answers));
}

main(process.argv[2]).catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
