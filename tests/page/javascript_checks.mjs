// Comparisons, buffers and sessions of the pages' cases, on py_ort and on other engines.

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
  const begun = Promise.resolve().then(work);
  const error = await begun.then(
    () => undefined,
    (e) => e,
  );
  if (!error) throw new Error(`no error, where one should say: ${words}`);
  if (!new RegExp(words).test(error.message)) throw error;
}

/** A buffer with these elements, or with room for this number of bytes. */
export function bufferOn(
  device,
  given,
  usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
) {
  const bytes = typeof given === 'number' ? new Uint8Array(given) : new Uint8Array(given.buffer);
  const size = Math.ceil(bytes.length / 4) * 4;
  const buffer = device.createBuffer({ size, usage, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(bytes);
  buffer.unmap();
  return buffer;
}

export async function contents(device, buffer, array, count) {
  const size = Math.ceil((count * array.BYTES_PER_ELEMENT) / 4) * 4;
  const read = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, read, 0, size);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(GPUMapMode.READ);
  return new array(read.getMappedRange().slice(0), 0, count);
}

const open = new Set();

/** Leaves a session to the end of its case (`ending`), unless the case releases it. */
export async function lasting(made) {
  const session = await made;
  const { release } = session;
  session.release = async () => {
    open.delete(session);
    await release.call(session);
  };
  open.add(session);
  return session;
}

/** The same cases, each of which releases its sessions at its end. */
export function ending(cases) {
  const whole = (work) => async () => {
    try {
      await work();
    } finally {
      await Promise.all([...open].map((session) => session.release()));
    }
  };
  return Object.fromEntries(Object.entries(cases).map(([name, work]) => [name, whole(work)]));
}

/** Runs cases one after the other. @returns 'done' for each, or its error. */
export async function outcomesOf(cases) {
  const outcomes = {};
  for (const [name, work] of Object.entries(ending(cases)))
    outcomes[name] = await work().then(
      () => 'done',
      (error) => `${error.message}\n${error.stack}`,
    );
  return outcomes;
}
