// Writes the manifest of the CPU kernels: node write_manifest.cjs core.mjs kernels.wasm.json
'use strict';
const fs = require('fs');
const { loadModule } = require('../test/core.cjs');

const [core, out] = process.argv.slice(2);
loadModule(core).then((module) => {
  const entries = JSON.parse(module.UTF8ToString(module._ort_kernel_manifest()));
  if (entries.error) throw new Error(entries.error);
  const text = '[\n' + entries.map((entry) => '  ' + JSON.stringify(entry)).join(',\n') + '\n]\n';
  fs.writeFileSync(out, text);
}).catch((error) => {
  console.error(`kernels.wasm.json: ${error.message}`);
  process.exitCode = 1;
});
