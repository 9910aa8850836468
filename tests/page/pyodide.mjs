// In Pyodide's place, for tests of what is around it: its "Python" answers with the file that was exported before.
function fetched(name) {
  const request = new XMLHttpRequest();
  request.open('GET', new URL(name, import.meta.url), false);
  request.responseType = 'arraybuffer';
  request.send();
  return new Uint8Array(request.response);
}

function exported(model, providers, progress) {
  const text = new TextDecoder().decode(model);
  if (text.includes('endless')) for (;;) progress('for ever', 0, 0);
  progress(`compiling for ${providers[0]}`, 0, 1);
  if (text.includes('Frobnicate'))
    throw new Error(
      'Traceback (most recent call last):\n  …\npy_ort.exceptions.NotImplemented: node y uses Frobnicate\n',
    );
  return { toJs: () => fetched('add.pyort'), destroy: () => undefined };
}

export async function loadPyodide() {
  return {
    async loadPackage([name]) {
      if (name === 'missing') throw new Error('Traceback (most recent call last):\n  …\nValueError: no wheel of it');
    },
    pyimport(name) {
      if (name !== 'py_ort.exporting.in_page') throw new Error(name);
      return { export_bytes: exported };
    },
    toPy: (value) => value,
  };
}
