// Elements of the page. A model's texts become text, never markup.

export function element<K extends keyof HTMLElementTagNameMap>(
  kind: K,
  text = '',
  className = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(kind);
  made.textContent = text;
  made.className = className;
  return made;
}

/** A row of a table: a label, then numbers. */
export function row([first, ...others]: readonly string[]): HTMLTableRowElement {
  const made = element('tr');
  made.append(element('td', first, 'text'), ...others.map((text) => element('td', text)));
  return made;
}

/** A choice with its label. Its values are the options' numbers, or their names. */
export function field(
  name: string,
  options: readonly string[],
  named = false,
): { readonly label: HTMLLabelElement; readonly select: HTMLSelectElement } {
  const label = element('label', `${name} `);
  const select = element('select');
  select.id = name;
  select.append(...options.map((text, i) => new Option(text, named ? text : String(i))));
  label.append(select);
  return { label, select };
}
