// Tables whose headings sort their rows.

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

/** Makes the headings of `table.sort` buttons. */
export function sortableTables(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('table.sort')) {
    [...table.tHead!.rows[0]!.cells].forEach((heading, column) => {
      heading.ariaSort = 'none';
      heading.tabIndex = 0;
      heading.addEventListener('click', () => sort(table, column));
      heading.addEventListener('keydown', (event) => {
        if (event.key === 'Enter') sort(table, column);
      });
    });
  }
}
