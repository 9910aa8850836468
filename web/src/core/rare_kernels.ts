// CPU kernels that few models use: a module beside the core (wasm_build/cmake/rare_kernels.cmake). The core has places
// for their functions in its table; until the module fills the places, they have functions that throw.
import { compileBeside } from './compiled';
import type { CoreFiles } from './files';

/** Imports of core.wasm for the functions of the module. */
const PLACEHOLDERS = new Proxy(
  {},
  {
    get: () => () => {
      throw new Error('rare_kernels.wasm is not loaded');
    },
  },
) as WebAssembly.ModuleImports;

/** For one core. */
export class RareKernels {
  private core: WebAssembly.Exports | undefined;
  private loading: Promise<void> | undefined;

  constructor(
    private readonly files: CoreFiles,
    private readonly shared: boolean,
  ) {}

  /** Makes an instance of core.wasm. */
  async instantiate(code: WebAssembly.Module, imports: WebAssembly.Imports): Promise<WebAssembly.Instance> {
    const made = await WebAssembly.instantiate(code, { ...imports, placeholder: PLACEHOLDERS });
    this.core = made.exports;
    return made;
  }

  /** Loads the module once. @throws fail if it cannot be loaded; the next call tries again. */
  load(): Promise<void> {
    this.loading ??= this.add();
    this.loading.catch(() => {
      this.loading = undefined;
    });
    return this.loading;
  }

  private async add(): Promise<void> {
    const { rareKernels } = this.files;
    const module = await compileBeside('rareKernels', rareKernels, this.shared);
    await WebAssembly.instantiate(module, { primary: this.core as WebAssembly.ModuleImports });
  }
}
