// Experimental: py_ort's compiler in a worker of the page, on Pyodide, as `env.compiler`. The page names the URLs of
// Pyodide and of Python's packages; they are loaded with the first model. A file of its own, py_ort_compiler.mjs, which
// the worker runs, too.
import type { ModelCompiler, CompileListener } from './env_types';

export interface PageCompilerOptions {
  /** URL of pyodide.mjs, whose folder has Pyodide's other files. */
  readonly pyodide: string | URL;
  /** Names of Pyodide's packages, and URLs of wheels, in the order of loading: py_ort and all that it needs. */
  readonly packages: readonly string[];
  /** Default: webgpu, and wasm alone. */
  readonly providers?: readonly string[];
}

interface Settings extends Omit<PageCompilerOptions, 'pyodide'> {
  readonly pyodide: string;
}

type Asked = { readonly settings: Settings; readonly model: Uint8Array };

type Told =
  | { readonly stage: string; readonly done: number; readonly total: number }
  | { readonly file: Uint8Array }
  | { readonly error: string };

/** The part of Pyodide that is used. */
interface Pyodide {
  loadPackage(names: readonly string[]): Promise<unknown>;
  pyimport(name: string): { export_bytes(model: unknown, providers: unknown, progress: unknown): PyBytes };
  toPy(value: unknown): unknown;
}

interface PyBytes {
  toJs(): Uint8Array;
  destroy(): void;
}

const WORKER = 'py_ort_compiler';

export class PageCompiler implements ModelCompiler {
  private worker: Worker | undefined;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: PageCompilerOptions) {}

  /**
   * Exports a model; waits for those before it. An abort ends the worker, and the next model starts another.
   *
   * @param model an ONNX file.
   * @returns the `.pyort` file.
   */
  compile(model: Uint8Array, listener: CompileListener = {}): Promise<Uint8Array> {
    const work = () => this.next(model, listener);
    const result = this.turn.then(work, work);
    this.turn = result.catch(() => undefined);
    return result;
  }

  /** Ends the worker. */
  terminate(): void {
    this.worker?.terminate();
    this.worker = undefined;
  }

  private next(model: Uint8Array, { onProgress, signal }: CompileListener) {
    signal?.throwIfAborted();
    const { pyodide, packages, providers } = this.options;
    const settings = { packages, providers, pyodide: new URL(pyodide, location.href).href };
    this.worker ??= new Worker(import.meta.url, { type: 'module', name: WORKER });
    const worker = this.worker;
    return new Promise<Uint8Array>((resolve, reject) => {
      const fail = (error: unknown) => {
        this.terminate();
        reject(error);
      };
      const abort = () => fail(signal!.reason);
      signal?.addEventListener('abort', abort, { once: true });
      worker.onerror = ({ message }) =>
        fail(new Error(`the compiler's worker failed: ${message || 'its script was not loaded'}`));
      worker.onmessage = ({ data }: MessageEvent<Told>) => {
        if ('stage' in data) return onProgress?.(data.stage, data.done, data.total);
        signal?.removeEventListener('abort', abort);
        if ('file' in data) resolve(data.file);
        else reject(new Error(data.error));
      };
      worker.postMessage({ settings, model } satisfies Asked);
    });
  }
}

const tell = (told: Told, transfer: Transferable[] = []) => self.postMessage(told, { transfer });
const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).trim();
/** Of an exception of Python's the last line, its type and text. */
const lastLine = (error: unknown) => wordsOf(error).split('\n').pop()!;

async function loadedPython({ pyodide, packages }: Settings): Promise<Pyodide> {
  let python: Pyodide;
  try {
    tell({ stage: 'loading Python', done: 0, total: 0 });
    const { loadPyodide } = await import(/* @vite-ignore */ /* webpackIgnore: true */ pyodide);
    python = await loadPyodide();
  } catch (error) {
    throw new Error(`Pyodide could not be loaded from ${pyodide}: ${wordsOf(error)}`);
  }
  for (const [i, name] of packages.entries()) {
    tell({ stage: `loading ${name.replace(/^.*\//, '')}`, done: i, total: packages.length });
    await python.loadPackage([name]).catch((error: unknown) => {
      throw new Error(`${name} could not be loaded into Pyodide: ${lastLine(error)}`);
    });
  }
  return python;
}

let python: Promise<Pyodide> | undefined;

async function exported({ settings, model }: Asked): Promise<Uint8Array> {
  python ??= loadedPython(settings);
  python.catch(() => {
    python = undefined; // the next model tries again
  });
  const loaded = await python;
  const progress = (stage: string, done: number, total: number) => tell({ stage, done, total });
  const providers = settings.providers ?? ['webgpu', 'wasm'];
  const { export_bytes } = loaded.pyimport('py_ort.exporting.in_page');
  const made = export_bytes(loaded.toPy(model), loaded.toPy(providers), progress);
  try {
    return made.toJs();
  } finally {
    made.destroy();
  }
}

if (typeof document === 'undefined' && (globalThis as { readonly name?: string }).name === WORKER)
  self.onmessage = async ({ data }: MessageEvent<Asked>) => {
    try {
      const file = await exported(data);
      tell({ file }, [file.buffer as ArrayBuffer]);
    } catch (error) {
      tell({ error: lastLine(error) });
    }
  };
