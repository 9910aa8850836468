// Writes what Python needs to know of the core: node write_manifest.cjs core.mjs FOLDER
//   kernels.wasm.json    the CPU kernels
//   options.webgpu.json  the options of the WebGPU provider
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { loadModule } = require('../test/core.cjs');

const [core, folder] = process.argv.slice(2);
loadModule(core)
  .then((module) => {
    const tables = {
      'kernels.wasm.json': module._ort_kernel_manifest(),
      'options.webgpu.json': module._ort_webgpu_options_table(),
    };
    for (const [name, pointer] of Object.entries(tables)) {
      const entries = JSON.parse(module.UTF8ToString(pointer));
      if (entries.error) throw new Error(entries.error);
      fs.writeFileSync(
        path.join(folder, name),
        `[\n${entries.map((entry) => `  ${JSON.stringify(entry)}`).join(',\n')}\n]\n`,
      );
    }
  })
  .catch((error) => {
    console.error(`the core's manifests: ${error.message}`);
    process.exitCode = 1;
  });
