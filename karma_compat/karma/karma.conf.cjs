// A configuration to start from: `npx karma start karma_compat/karma/karma.conf.cjs`, with npm's karma installed.
module.exports = (config) =>
  config.set({
    plugins: [require('./plugin.cjs')],
    frameworks: ['py_ort'],
    reporters: ['py_ort'],
    customLaunchers: { chromium: { base: 'py_ort', browser: 'chromium' } },
    browsers: ['chromium'], // or those of Karma's own launchers
    py_ort: { args: ['suite1', '-b=webgpu,wasm', '--test-data=test'] },
    browserNoActivityTimeout: 600000,
    singleRun: true,
  });
