// Tables whose headings sort their rows. Long ones have a field that shows only the rows with its words.

/** Rows that need no field. */
const FEW = 8;

/** Numbers of `data-n`, or the text; cells without either come last. */
function key(row: HTMLTableRowElement, column: number): number | string | undefined {
  const cell = row.cells[column];
  const text = cell?.dataset.n ?? cell?.textContent?.trim();
  if (!text) return undefined;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

function compare(a: number | string, b: number | string): number {
  return typeof a === 'number' && typeof b === 'number'
    ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
}

/**
 * Sorts by a column: numbers from the largest and texts from A, and the other way around when that is the order
 * already.
 */
function sort(table: HTMLTableElement, column: number): void {
  const headings = [...table.tHead!.rows[0]!.cells];
  const body = table.tBodies[0]!;
  const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
  const first = rows.find((row) => row.key !== undefined)?.key;
  const before = headings[column]!.ariaSort;
  const down = before === 'none' ? typeof first === 'number' : before === 'ascending';
  rows.sort((a, b) => {
    if (a.key === undefined || b.key === undefined) return Number(a.key === undefined) - Number(b.key === undefined);
    return compare(a.key, b.key) * (down ? -1 : 1);
  });
  for (const heading of headings) heading.ariaSort = 'none';
  headings[column]!.ariaSort = down ? 'descending' : 'ascending';
  body.append(...rows.map(({ row }) => row));
}

/** Shows the rows that contain all words of a text, in any case. */
function show(rows: readonly HTMLTableRowElement[], text: string): number {
  const words = text.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const said = row.textContent!.toLowerCase();
    row.hidden = !words.every((word) => said.includes(word));
  }
  return rows.filter((row) => !row.hidden).length;
}

/** Puts the field above a table, with the number of rows that it shows. */
function filter(table: HTMLTableElement): void {
  const rows = [...table.tBodies[0]!.rows];
  if (rows.length <= FEW) return;
  const field = document.createElement('input'),
    count = document.createElement('span'),
    line = document.createElement('p');
  const columns = [...table.querySelectorAll('th.text')].map((heading) => heading.textContent);
  Object.assign(field, { type: 'search', placeholder: 'filter', ariaLabel: `Filter by ${columns.join(', ')}` });
  Object.assign(count, { className: 'help', role: 'status' });
  Object.assign(line, { className: 'filter' });
  field.addEventListener('input', () => {
    const shown = show(rows, field.value.trim());
    count.textContent = field.value ? `${shown} of ${rows.length} rows` : '';
  });
  line.append(field, ' ', count);
  (table.closest('.wide') ?? table).before(line);
}

/** Makes the headings of `table.sort` buttons, and gives long tables their field. */
export function interactiveTables(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('table.sort')) {
    [...table.tHead!.rows[0]!.cells].forEach((heading, column) => {
      heading.ariaSort = 'none';
      heading.tabIndex = 0;
      heading.addEventListener('click', () => sort(table, column));
      heading.addEventListener('keydown', (event) => {
        if (event.key === 'Enter') sort(table, column);
      });
    });
    filter(table);
  }
}
