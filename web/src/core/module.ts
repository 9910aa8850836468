// The core's module, as Emscripten makes it: the parts that web/src uses. The C functions are those of
// wasm_build/include/py_ort/abi.h.

import type { Picture } from '../images/picture';
import type { MicroKernel } from './shared_work';

/** Options with which a core is made. */
export interface CoreOptions {
  print(text: string): void;
  printErr(text: string): void;
  /** The heap, if core.mjs is not to make its own. */
  readonly wasmMemory?: WebAssembly.Memory;
  /** Makes an instance of core.wasm, and passes it on later. */
  instantiateWasm(
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): object;
  /** The place of core.wasm. */
  readonly locateFile?: () => string;
}

/** The default export of core.mjs. */
export type CreateCore = (options: CoreOptions) => Promise<CoreModule>;

export interface CoreModule {
  readonly HEAPU8: Uint8Array;
  readonly HEAPU32: Uint32Array;
  readonly Asyncify: { readonly currData: unknown; whenDone(): Promise<number> };
  UTF8ToString(pointer: number): string;
  addMicrokernels(sideModule: WebAssembly.Module, relaxed: boolean): boolean;
  /** Installed by the page: runs all units of a micro-kernel on several threads. Returns 1, or 0 without memory. */
  shareMicrokernel?: (
    index: number,
    kernel: MicroKernel,
    args: number,
    scratchBytes: number,
    units: number,
    wake: boolean,
  ) => number;
  /**
   * Installed by the page: decodes an image's bytes in the heap into pixels. Rejects with the error passed to
   * ort_jsep_error.
   */
  decodeImage?: (encoded: number, size: number, format: string) => Promise<Picture>;
  jsepInit(backend: unknown, functions: JsepFunctions): void;

  _ort_last_error(): number;
  _ort_kernel_at_work(): number;
  _ort_malloc(size: number): number;
  _ort_free(pointer: number): void;
  _ort_microkernel_names(): number;
  _ort_microkernels_use(relaxed: number, threads: number): void;
  _ort_microkernels_warm(relaxed: number): void;
  _ort_tensor_bytes(reset: number): number;
  _ort_crc32(sum: number, bytes: number, size: number): number;
  _ort_session_create(plan: number, size: number): number;
  _ort_session_runs_microkernels(session: number): number;
  _ort_session_has_rare_kernels(session: number): number;
  _ort_session_weight(session: number, index: number): number;
  _ort_session_share_weight(session: number, index: number, owner: number, other: number): number;
  _ort_session_weight_on_device(session: number, index: number, id: number): number;
  _ort_session_prepare(session: number): number;
  _ort_session_release(session: number): void;
  _ort_run_begin(session: number): number;
  _ort_run_feed(
    run: number,
    input: number,
    dtype: number,
    rank: number,
    dims: number,
    data: number,
    size: number,
  ): number;
  _ort_run_feed_device(
    run: number,
    input: number,
    provider: number,
    dtype: number,
    rank: number,
    dims: number,
    id: number,
  ): number;
  _ort_run_feed_container(run: number, input: number, kind: number, dtype: number): number;
  _ort_run_execute(run: number): number;
  _ort_run_profile(run: number): void;
  _ort_run_times(run: number): number;
  _ort_run_cancel(run: number): void;
  _ort_run_replayable(run: number): number;
  _ort_run_refresh(run: number): number;
  _ort_run_output(run: number, output: number): number;
  _ort_run_end(run: number): void;
  _ort_jsep_output(context: number, index: number, dtype: number, rank: number, dims: number): number;
  _ort_jsep_output_view(context: number, index: number, input: number, rank: number, dims: number): number;
  _ort_jsep_error(code: number, message: number): void;
}

/**
 * The JSEP seam: functions that the core calls, for the device of the provider with this index in the plan's list.
 * Exceptions become the core's errors.
 */
export interface JsepFunctions {
  /** The id of new memory; never 0. */
  alloc(provider: number, size: number): number;
  free(provider: number, id: number): void;
  /**
   * upload: from the heap address `source` to the tensor `target`. Otherwise from tensor to tensor, and `blocks` points
   * to five words: count, source offset and step, target offset and step; `count` blocks of `size` bytes are copied.
   */
  copy(
    provider: number,
    source: number,
    target: number,
    size: number,
    upload: boolean,
    dtype: number,
    blocks: number,
  ): void;
  /**
   * From the tensor `id` into the heap at `target`. Undefined: the bytes are there already. Otherwise the core is
   * suspended meanwhile.
   */
  copyAsync(provider: number, id: number, target: number, size: number): Promise<void> | undefined;
  /** 0, or an ErrorCode. */
  createKernel(provider: number, opType: string, id: number, attributes: number, size: number, domain: string): number;
  releaseKernel(provider: number, id: number): void;
  /** 0, or an ErrorCode that _ort_jsep_error has reported. */
  run(provider: number, id: number, context: number): number;
}
