// Tells the server the words that the page of samples/web/ocr read in the sample.
function encoded({ type, dims, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { type, dims, data: btoa(text) };
}

const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
globalThis.sampleRead.then(
  ({ lines, ran, executionProviders }) => {
    const runs = Object.entries(ran).map(([model, each]) => [
      model,
      each.map(({ feed, output }) => ({ feed: encoded(feed), output: encoded(output) })),
    ]);
    const status = document.querySelector('#status').textContent;
    const { width, height } = document.querySelector('canvas');
    return tell({ lines, ran: Object.fromEntries(runs), executionProviders, status, canvas: [width, height] });
  },
  (error) => tell({ error: `${error.stack ?? error}` }),
);
