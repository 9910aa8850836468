// The page that `py-ort export --page` writes: a model with its inputs, outputs, times, and the placement of its nodes.
import { providers } from 'virtual:build';
import { ErrorCode, InferenceSession, type OnnxValue, RuntimeError, type Tensor } from '../index';
import { Package } from '../package/package';
import { element, field, row } from './elements';
import { type InputForm, inputForms } from './inputs';
import { outputRows } from './outputs';
import { showPlacement } from './placement';

/** Data that Python writes into the page: the files, each with initial shapes for its inputs. */
interface PageData {
  readonly models: readonly {
    readonly file: string;
    readonly shapes: { readonly [input: string]: readonly number[] };
  }[];
}

interface Opened {
  readonly session: InferenceSession;
  readonly provider: string;
  /** Earlier providers, with the reasons why they did not run. */
  readonly leftOut: readonly string[];
  readonly loadMs: number;
}

/** A larger file is read again for its placement only on request: servers may not support ranges. */
const READ_TWICE = 64 << 20;
const STEADY_RUNS = 10;
const STEADY_MS = 5000;
const data = JSON.parse(document.getElementById('data')!.textContent!) as PageData;
const asked = new URLSearchParams(location.search);
const at = (id: string) => document.getElementById(id)!;

/** For people, and, as `data-state`, for programs: loading, ready, running, done or failed. */
function say(state: string, text: string): void {
  at('status').textContent = text;
  at('status').classList.toggle('bad', state === 'failed');
  document.body.dataset.state = state;
}

function fail(error: unknown): void {
  const code = error instanceof RuntimeError ? ` (${ErrorCode[error.code]})` : '';
  say('failed', `${error instanceof Error ? error.message : String(error)}${code}`);
}

/** Opens the file for the first available one of these providers, and notes why others are not available. */
async function open(url: URL, providers: readonly string[]): Promise<Opened> {
  const leftOut: string[] = [];
  for (const provider of providers) {
    const started = performance.now();
    try {
      const session = await InferenceSession.create(url, {
        executionProviders: [provider],
        onProgress: (stage, done, total) => say('loading', total ? `${stage} ${done} of ${total}` : stage),
      });
      return { session, provider, leftOut, loadMs: performance.now() - started };
    } catch (error) {
      if (!(error instanceof RuntimeError && error.code === ErrorCode.no_adapter)) throw error;
      leftOut.push(error.message.replace(/^no execution provider is available: /, ''));
    }
  }
  throw new RuntimeError(ErrorCode.no_adapter, leftOut.join('; '));
}

function times(first: number, steady: readonly number[], { loadMs }: Opened): void {
  const sorted = [...steady].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const shown = { load: loadMs, 'first run': first, [`steady runs, median of ${sorted.length}`]: median };
  at('times').replaceChildren(...Object.entries(shown).map(([what, ms]) => row([what, `${ms.toFixed(1)} ms`])));
  for (const [name, ms] of [
    ['load', loadMs],
    ['first', first],
    ['steady', median],
  ] as const)
    at('times').dataset[name] = String(ms);
}

async function run(opened: Opened, forms: readonly InputForm[]): Promise<void> {
  say('running', 'running');
  const feeds: { [name: string]: Tensor } = {};
  for (const form of forms) feeds[form.name] = await form.tensor();
  const timed = async (): Promise<[number, { [name: string]: OnnxValue }]> => {
    const started = performance.now();
    const outputs = await opened.session.run(feeds);
    return [performance.now() - started, outputs];
  };
  const [first, outputs] = await timed();
  at('outputs').replaceChildren(...Object.entries(outputs).flatMap(([name, value]) => outputRows(name, value)));
  const steady: number[] = [];
  for (let spent = 0; steady.length < STEADY_RUNS && spent < STEADY_MS; spent += steady[steady.length - 1]) {
    say('running', `steady run ${steady.length + 1} of ${STEADY_RUNS}`);
    steady.push((await timed())[0]);
  }
  times(first, steady, opened);
  say('done', 'done');
}

/** The providers to try, according to the user's choice, among those for which the file has plans. */
function wanted(model: Package): readonly string[] {
  const choice = (at('provider') as HTMLSelectElement).value;
  if (providers.includes(choice)) return [choice];
  return providers.filter((name) => model.header.plans.some((plan) => plan.providers[0] === name));
}

function facts(opened: Opened, model: Package): void {
  const { producer, size, parts, plans } = model.header;
  const threads = crossOriginIsolated
    ? 'as many as there are cores, up to 8'
    : 'one: the server sends no COOP and COEP headers (docs/web.md says how)';
  const shown = {
    'runs on': opened.provider,
    ...(opened.leftOut.length > 0 ? { 'does not run on': opened.leftOut.join('; ') } : {}),
    'threads of wasm': threads,
    file: `${(size / 1e6).toFixed(2)} MB in ${parts.length + 1} file${parts.length ? 's' : ''}, written by ${producer}`,
    plans: plans
      .map(({ providers, shapes }) => providers[0] + (Object.keys(shapes).length ? ' (one shape)' : ''))
      .join(', '),
    browser: navigator.userAgent,
  };
  at('facts').replaceChildren(
    ...Object.entries(shown).flatMap(([name, text]) => [element('dt', name), element('dd', text)]),
  );
  at('facts').dataset.provider = opened.provider;
}

let current: Opened | undefined;

async function show(): Promise<void> {
  const chosen = data.models[Number((at('model') as HTMLSelectElement).value)];
  const url = new URL(encodeURIComponent(chosen.file), location.href);
  for (const id of ['inputs', 'outputs', 'times', 'facts', 'nodes', 'placed']) at(id).replaceChildren();
  const name = chosen.file.replace(/\.pyort$/, '');
  document.title = name;
  document.querySelector('h1')!.textContent = name;
  (at('run') as HTMLButtonElement).disabled = true;
  say('loading', 'loading the model');
  await current?.session.release();
  current = undefined;
  const model = await Package.open(url);
  model.close();
  const opened = await open(url, wanted(model));
  current = opened;
  facts(opened, model);
  const forms = inputForms(opened.session.inputMetadata, chosen.shapes);
  at('inputs').replaceChildren(...forms.map(({ shown }) => shown));
  const started = () => run(opened, forms).catch(fail);
  at('run').onclick = () => void started();
  (at('run') as HTMLButtonElement).disabled = false;
  say('ready', 'ready');
  const placement = () => showPlacement(url, opened.session.executionProviders, at('placed'), at('nodes')).catch(fail);
  const details = at('placement') as HTMLDetailsElement;
  at('placed').textContent = 'where each node runs';
  details.ontoggle = model.header.size > READ_TWICE ? () => void (details.open && placement()) : null;
  if (!details.ontoggle) await placement();
}

at('module').remove();
const models = field(
  'model',
  data.models.map(({ file }) => file),
);
const choices = field('provider', ['automatic', ...providers], true);
at('choices').append(models.label, choices.label);
models.select.value = String(
  Math.max(
    data.models.findIndex(({ file }) => file === asked.get('model')),
    0,
  ),
);
if (asked.has('provider')) choices.select.value = asked.get('provider')!;
for (const { select } of [models, choices]) select.onchange = () => void show().catch(fail);
void show()
  .then(() => asked.has('run') && at('run').click())
  .catch(fail);
