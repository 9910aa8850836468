// Words for failures of the pages' cases.

export function equal(actual, expected) {
  if (actual.length === expected.length && [...actual].join() === [...expected].join()) return;
  throw new Error(`expected ${[...expected]}, got ${[...actual]}`);
}

/** `actual` may differ by up to `most`. */
export function near(actual, expected, most) {
  if (actual.length === expected.length && [...actual].every((value, i) => Math.abs(value - expected[i]) <= most))
    return;
  throw new Error(`expected ${[...expected]}, give or take ${most}, got ${[...actual]}`);
}

export async function fails(work, words) {
  const error = await Promise.resolve()
    .then(work)
    .then(
      () => undefined,
      (e) => e,
    );
  if (!error) throw new Error(`no error, where one should say: ${words}`);
  if (!new RegExp(words).test(error.message)) throw error;
}

/** Runs cases one after the other. @returns 'done' for each, or its error. */
export async function outcomesOf(cases) {
  const outcomes = {};
  for (const [name, work] of Object.entries(cases)) {
    outcomes[name] = await work().then(
      () => 'done',
      (error) => `${error.message}\n${error.stack}`,
    );
  }
  return outcomes;
}
