// The page of results: operators and cases against the runs, which browsers had. Everything is made as text.
import { button, pageData } from './page';
import { interactiveTables } from './tables';

/** A status (p, f, k: known to fail, s), a number of `reasons`, milliseconds, where nodes ran, and command lines. */
type Cell = readonly [status: string, reason: number, ms: number, nodes: string, commands: readonly string[]] | null;
type Case = readonly [name: string, group: string, cells: readonly Cell[]];
interface Data {
  readonly runs: readonly string[];
  readonly cases: readonly Case[];
  readonly reasons: readonly string[];
}

const STEP = 200;
/** Runs beside which there is room for reasons, and characters of one. */
const ROOMY = 3,
  MOST_SAID = 90;
/** Where the name of a case or operator may be broken: test_|max|_…, Reduce|Max. */
const WORDS = /(?=_)|(?<=[a-z\d])(?=[A-Z])/;
const MARKS: { readonly [status: string]: string } = { p: '✓', f: '✗', k: '(✗)', s: '–' };

const { runs, cases, reasons } = pageData<Data>();
const text = document.getElementById('text') as HTMLInputElement;
const show = document.getElementById('show') as HTMLSelectElement;
const more = document.getElementById('more') as HTMLButtonElement;
const table = document.getElementById('cases') as HTMLTableElement;
let shown = STEP;

function add<K extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: K,
  content = '',
  className = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = content;
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function nameButton(row: Element, name: string, action: () => void): HTMLButtonElement {
  const made = add(add(row, 'td'), 'button');
  for (const word of name.split(WORDS)) {
    if (made.firstChild) add(made, 'wbr');
    made.append(word);
  }
  made.type = 'button';
  made.addEventListener('click', action);
  return made;
}

function head(of: HTMLTableElement, first: string): HTMLTableSectionElement {
  of.replaceChildren();
  const row = add(add(of, 'thead'), 'tr');
  for (const title of [first, ...runs]) add(row, 'th', title);
  return add(of, 'tbody');
}

const statuses = ([, , cells]: Case) => cells.map((cell) => cell?.[0]);
const failed = (one: Case) => statuses(one).some((status) => status === 'f' || status === 'k');
/** A run that skipped it says nothing. */
const unlike = (one: Case) => new Set(statuses(one).filter((status) => status && status !== 's')).size > 1;
const slowest = ([, , cells]: Case) => Math.max(...cells.map((cell) => cell?.[2] ?? 0));

function chosen(): Case[] {
  const wanted = text.value.toLowerCase();
  const says = ([name, group, cells]: Case) =>
    [name, group, ...cells.map((cell) => (cell ? reasons[cell[1]]! : ''))].some((one) =>
      one.toLowerCase().includes(wanted),
    );
  const found = cases.filter((one) => {
    if (show.value === 'wrong' && !failed(one)) return false;
    if (show.value === 'unlike' && !unlike(one)) return false;
    return says(one);
  });
  return show.value === 'slow' ? found.sort((a, b) => slowest(b) - slowest(a)) : found;
}

/** Adds a command line, with a button that copies it. */
function addCommand(parent: Element, command: string): void {
  const line = add(parent, 'p', '', 'command');
  const code = add(line, 'code', command);
  const copy = button('Copy', 'Copy this command, which repeats the failure', async () => {
    getSelection()!.selectAllChildren(code); // for a browser that lets no script copy
    const copied = navigator.clipboard?.writeText(command).then(() => true);
    if (await copied?.catch(() => false)) copy.textContent = 'Copied';
  });
  line.append(' ', copy);
}

/** Shows or hides the details of a case below its row. */
function explain(row: HTMLTableRowElement, [, group, cells]: Case): void {
  if (row.nextElementSibling?.className === 'why') {
    row.nextElementSibling.remove();
    return;
  }
  const why = document.createElement('tr');
  why.className = 'why';
  row.after(why);
  const cell = add(why, 'td');
  cell.colSpan = runs.length + 1;
  if (group) add(cell, 'p', `operator: ${group}`);
  cells.forEach((one, i) => {
    const said = one ? [MARKS[one[0]], `${one[2]} ms`, one[3], reasons[one[1]]].filter(Boolean).join(', ') : 'not run';
    add(cell, 'p', `${runs[i]}: ${said}`);
    for (const command of one?.[4] ?? []) addCommand(cell, command);
  });
}

function list(): void {
  const found = chosen();
  const body = head(table, 'case');
  for (const one of found.slice(0, shown)) {
    const row = add(body, 'tr');
    nameButton(row, one[0], () => explain(row, one));
    for (const cell of one[2]) {
      const made = add(row, 'td', '', cell?.[0]);
      if (!cell) continue;
      made.title = reasons[cell[1]]!.slice(0, 1000);
      add(made, 'b', MARKS[cell[0]]);
      if (cell[0] === 'p') add(made, 'small', ` ${cell[2]}`);
      else if (cell[0] === 'f' && runs.length <= ROOMY) add(made, 'small', ` ${reasons[cell[1]]!.slice(0, MOST_SAID)}`);
    }
  }
  document.getElementById('count')!.textContent = `${found.length} of ${cases.length}`;
  more.hidden = found.length <= shown;
}

function listGroups(): void {
  const groups = new Map<string, Case[]>();
  for (const one of cases) if (one[1]) groups.set(one[1], [...(groups.get(one[1]) ?? []), one]);
  const section = document.getElementById('groups')!;
  section.hidden = groups.size === 0;
  const body = head(section.querySelector('table')!, 'operator');
  for (const [name, members] of [...groups].sort(([a], [b]) => a.localeCompare(b))) {
    const row = add(body, 'tr');
    nameButton(row, name, () => {
      text.value = name;
      show.value = 'all';
      again();
      document.getElementById('list')!.scrollIntoView();
    });
    runs.forEach((_, i) => {
      const cells = members.map(([, , all]) => all[i]).filter((cell) => cell && cell[0] !== 's');
      const passed = cells.filter((cell) => cell![0] === 'p').length;
      const worst = cells.some((cell) => cell![0] === 'f') ? 'f' : passed < cells.length ? 'k' : 'p';
      const made = add(row, 'td', '', cells.length ? worst : 's');
      add(made, 'b', cells.length ? `${passed}/${cells.length}` : '–');
    });
  }
}

function again(): void {
  shown = STEP;
  list();
}

if (!cases.some(failed)) show.value = 'all';
text.addEventListener('input', again);
show.addEventListener('change', again);
more.addEventListener('click', () => {
  shown += STEP;
  list();
});
interactiveTables();
listGroups();
list();
