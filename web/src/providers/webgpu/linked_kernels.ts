// The kernels of a minimal runtime, instead of those of virtual:kernels: `py-ort export --runtime minimal` writes the
// modules that its models need into the script (py_ort/exporting/minimal_runtime.py).
import { modules as outside } from 'virtual:outside';
import type { Kernel } from '../../contract/kernel';

interface Module {
  exports: object;
}

/** Python puts the modules in place of this name. */
declare const PY_ORT_KERNELS: {
  /** Modules that export a list of kernels, by their names. */
  readonly lists: readonly string[];
  readonly modules: { readonly [name: string]: (require: (name: string) => object, module: Module) => void };
};

const given = PY_ORT_KERNELS;
const made = new Map<string, Module>();

function load(name: string): object {
  if (Object.hasOwn(outside, name)) return outside[name];
  let module = made.get(name);
  if (!module) {
    made.set(name, (module = { exports: {} }));
    given.modules[name](load, module);
  }
  return module.exports;
}

export const kernels = given.lists.flatMap((name) => (load(name) as { default: readonly Kernel[] }).default);
export const sources: readonly string[] = [];
export const isMinimal = true;
