// Writes what Python needs to know of the core: node write_manifest.cjs core.mjs FOLDER
//   kernels.wasm.json    the CPU kernels
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { loadModule } = require('../test/core.cjs');

const [core, folder] = process.argv.slice(2);
loadModule(core)
  .then((module) => {
    const entries = JSON.parse(module.UTF8ToString(module._ort_kernel_manifest()));
    if (entries.error) throw new Error(entries.error);
    const lines = entries.map((entry) => `  ${JSON.stringify(entry)}`);
    fs.writeFileSync(path.join(folder, 'kernels.wasm.json'), `[\n${lines.join(',\n')}\n]\n`);
  })
  .catch((error) => {
    console.error(`the core's manifest: ${error.message}`);
    process.exitCode = 1;
  });
