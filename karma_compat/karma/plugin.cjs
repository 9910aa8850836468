// For Karma: a launcher, a framework and a reporter, all called `py_ort`; see ../README.md.
const { spawn } = require('node:child_process');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '../..');
const RUN = '/py_ort/run';
const MARKS = { passed: '✔', failed: '✖', skipped: 'ℹ' };

/** The command that starts our Python modules. */
function python(config) {
  const command = config?.python || process.env.PYTHON || path.join(ROOT, '.venv/bin/python');
  const PYTHONPATH = [ROOT, process.env.PYTHONPATH].filter(Boolean).join(path.delimiter);
  return { command, env: { ...process.env, PYTHONPATH } };
}

/** The browser that py_ort would start: `customLaunchers: {NAME: {base: 'py_ort', browser, webgpu}}`. */
function Launcher(baseLauncherDecorator, args, config) {
  baseLauncherDecorator(this);
  const { browser = 'chromium', webgpu = 'auto' } = args;
  this.name = `py_ort ${browser}`;
  let running;
  this.on('start', (url) => {
    const { command, env } = python(config.py_ort);
    running = spawn(command, ['-m', 'karma_compat.open_browser', browser, webgpu, url], { env, stdio: ['pipe', 2, 2] });
    running.on('error', (error) => this._done(error.message));
    running.on('exit', (code) => this._done(running.ending ? undefined : `the browser ended with status ${code}`));
  });
  this.on('kill', (done) => {
    if (!running || running.exitCode !== null) return done();
    running.ending = true;
    running.on('exit', () => done());
    running.stdin.end(); // it closes its browser then
  });
}
Launcher.$inject = ['baseLauncherDecorator', 'args', 'config'];

/** Runs in each captured browser what `py_ort: {args: [...]}` says, a command line of onnxruntime-web's runner. */
function framework(config) {
  config.files.unshift({ pattern: path.join(__dirname, 'adapter.js'), included: true, served: true, watched: false });
  config.middleware = [...(config.middleware || []), 'py_ort'];
}
framework.$inject = ['config'];

/** Starts Python for a browser, and hands on what it says, line by line. */
function middleware(config) {
  return (request, response, next) => {
    if (!request.url.startsWith(RUN)) return next();
    const { command, env } = python(config.py_ort);
    const args = ['-m', 'karma_compat.in_karma', ...(config.py_ort?.args || [])];
    const cases = spawn(command, args, { env, stdio: ['ignore', 'pipe', 2] });
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' });
    cases.on('error', (error) => response.end(JSON.stringify({ error: error.message })));
    cases.stdout.pipe(response);
    response.on('close', () => cases.kill());
  };
}
middleware.$inject = ['config'];

function interval(milliseconds) {
  const minutes = Math.floor(milliseconds / 60000);
  const seconds = (milliseconds - minutes * 60000) / 1000;
  const text = `${seconds} ${seconds === 1 ? 'sec' : 'secs'}`;
  return minutes ? `${minutes} ${minutes === 1 ? 'min' : 'mins'} ${text}` : text;
}

/** Prints what the peer's runner prints. */
function Reporter(baseReporterDecorator) {
  baseReporterDecorator(this);
  const counts = { passed: 0, skipped: 0, failed: 0 };
  const failures = new Map(); // by suite
  let suite;
  this.onSpecComplete = (_browser, { description, suite: [title], success, skipped, log, time }) => {
    const status = skipped ? 'skipped' : success ? 'passed' : 'failed';
    counts[status]++;
    if (skipped) return;
    if (suite !== title) this.write(`  ${(suite = title)}\n`);
    this.write(`    ${MARKS[status]} ${description}${time >= 100 ? ` (${Math.round(time)}ms)` : ''}\n`);
    if (success) return;
    const failed = `    ${MARKS.failed} ${description}\n      ${log.join('\n      ')}\n`;
    failures.set(title, (failures.get(title) ?? `  ${title}\n`) + failed);
  };
  this.onBrowserError = (browser, error) => this.write(`${browser}: ${error.message || error}\n`);
  this.onRunComplete = (browsers) => {
    const sum = (field) => browsers.map(({ lastResult }) => lastResult[field]).reduce((a, b) => a + b, 0);
    const [total, net] = ['totalTime', 'netTime'].map(sum).map(interval);
    this.write(`\nFinished in ${total} / ${net} @ ${new Date().toTimeString()}\n\nSUMMARY:\n`);
    for (const [status, words] of [
      ['passed', 'completed'],
      ['skipped', 'skipped'],
      ['failed', 'failed'],
    ]) {
      const count = counts[status];
      if (!count && status !== 'passed') continue;
      this.write(`${MARKS[status]} ${count} ${count === 1 ? 'test' : 'tests'} ${words}\n`);
    }
    if (failures.size) this.write(`\nFAILED TESTS:\n${[...failures.values()].join('')}`);
  };
}
Reporter.$inject = ['baseReporterDecorator'];

module.exports = {
  'launcher:py_ort': ['type', Launcher],
  'framework:py_ort': ['factory', framework],
  'middleware:py_ort': ['factory', middleware],
  'reporter:py_ort': ['type', Reporter],
};
