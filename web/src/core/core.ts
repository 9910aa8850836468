// The core's C ABI as a class: pointers in, errors as exceptions. One core serves all sessions of a worker; its calls
// must not overlap.
import { type DType, ErrorCode } from '../schema';
import { codeOf, messageOf, RuntimeError } from '../errors';
import type { CompiledMicrokernels, CoreFiles } from './files';
import { compileCore } from './compiled';
import { crashOf, explain, watched } from './crash';
import { Microkernels } from './microkernels';
import { RareKernels } from './rare_kernels';
import type { CoreModule, CreateCore, JsepFunctions } from './module';
import { SINGLE_THREADED, sharedMemory } from './shared_memory';
import { type CoreContainer, type CoreInput, type CoreOutput, WordReader } from './words';
import { decodeImage } from '../images/decode';
import type { GoOn } from '../wire/checksum';
import type { Picture } from '../images/picture';

/** Bytes: a file of a session arrives in one piece. */
const SUMMED_AT_ONCE = 1 << 18;

async function imported(glue: CoreFiles['core']): Promise<CreateCore> {
  if (!(glue instanceof URL)) return glue;
  const { default: createCore } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ glue.href)) as {
    default: CreateCore;
  };
  return createCore;
}

export class Core {
  private feedDims = { address: 0, room: 0 };
  /** The value that a JSEP function threw during the current call; the core only has its text. */
  private thrown: unknown;
  /** The JSEP functions that ever suspended the core. */
  readonly suspendedIn = new Set<string>();
  /**
   * The error that ended the core. The core and its sessions are unusable from then on; callers waiting for it receive
   * this very error.
   */
  crashed: RuntimeError | undefined;
  /** Ends the wait for a suspended run. */
  private giveUp: ((error: RuntimeError) => void) | undefined;

  private constructor(
    private readonly whole: CoreModule,
    readonly microkernels: Microkernels,
    private readonly rareKernels: RareKernels,
  ) {}

  private get module(): CoreModule {
    if (this.crashed) throw this.crashed;
    return this.whole;
  }

  /** Loads the core, on shared memory if there is any. `log` receives the output of the core and its runtime. */
  static async load(files: CoreFiles, log: (severity: number, text: string) => void): Promise<Core> {
    const { core: glue, wasm, compiled, threads = true } = files;
    const memory = threads ? sharedMemory() : SINGLE_THREADED;
    const shared = typeof memory !== 'string';
    const compiling = Promise.resolve(compiled).then((early) =>
      early?.shared === shared ? early : compileCore(files, shared),
    );
    compiling.catch(() => undefined); // reported below
    let core: Core | undefined;
    let module: CoreModule;
    let early: CompiledMicrokernels | undefined;
    const rare = new RareKernels(files, shared);
    try {
      const createCore = await imported(glue);
      const { core: code, microkernels } = await compiling;
      early = microkernels;
      module = await new Promise((resolve, reject) => {
        const making = createCore({
          ...(shared ? { wasmMemory: memory } : {}),
          // Set in all cases: next to a script that is a blob, which transformers.js makes of it, no name resolves.
          locateFile: () => (wasm instanceof Uint8Array ? 'core.wasm' : wasm.href),
          instantiateWasm(imports, done) {
            const told = (thrown: unknown) => core?.crash(thrown) ?? thrown;
            rare.instantiate(code, imports).then((made) => done(watched(made, told), code), reject);
            return {};
          },
          print: (text) => log(1, text),
          printErr: (text) => log(2, text),
        });
        making.then(resolve, reject);
      });
    } catch (error) {
      const files = [glue, wasm].map((file) => (file instanceof URL ? file.pathname : 'memory')).join(' and ');
      throw new RuntimeError(ErrorCode.fail, `the core could not be loaded (${files}): ${messageOf(error)}`);
    }
    const made = new Core(module, new Microkernels(module, files, memory, log), rare);
    core = made;
    if (early) made.microkernels.add(early);
    module.decodeImage = (address, size, format) => made.decodeImage(address, size, format);
    return made;
  }

  /** Installs the JavaScript execution provider. */
  install(backend: unknown, functions: JsepFunctions): void {
    const guard =
      <A extends unknown[], R>(name: keyof JsepFunctions, call: (...args: A) => R) =>
      (...args: A): R => {
        try {
          const result = call.apply(functions, args);
          if (result instanceof Promise) {
            this.suspendedIn.add(`jsep${name[0].toUpperCase()}${name.slice(1)}`);
            result.catch((error: unknown) => {
              this.thrown = error;
            });
          }
          return result;
        } catch (error) {
          this.thrown = error;
          throw error;
        }
      };
    this.module.jsepInit(backend, {
      alloc: guard('alloc', functions.alloc),
      free: guard('free', functions.free),
      copy: guard('copy', functions.copy),
      copyAsync: guard('copyAsync', functions.copyAsync),
      createKernel: guard('createKernel', functions.createKernel),
      releaseKernel: guard('releaseKernel', functions.releaseKernel),
      run: guard('run', functions.run),
    });
  }

  /** The current heap; a growth of the memory makes a new one. */
  get heap(): Uint8Array {
    return this.module.HEAPU8;
  }

  /** A view of the heap's bytes, valid until the next call of the core. */
  view(address: number, size: number): Uint8Array {
    return this.heap.subarray(address, address + size);
  }

  /** A copy of heap bytes. */
  bytes(address: number, size: number): Uint8Array<ArrayBuffer> {
    return this.heap.slice(address, address + size);
  }

  /** Bytes of all tensors in the heap: the current number, and the peak since the last call with `reset`. */
  tensorBytes(reset = false): { now: number; peak: number } {
    const words = this.module._ort_tensor_bytes(Number(reset)) >>> 2;
    return { now: this.module.HEAPU32[words], peak: this.module.HEAPU32[words + 1] };
  }

  /** CRC-32 of bytes that are not in the heap; see `GoOn`. */
  readonly crc32: GoOn = (sum, bytes) => {
    const address = this.allocate(bytes.subarray(0, SUMMED_AT_ONCE));
    for (let at = 0; at < bytes.byteLength; at += SUMMED_AT_ONCE) {
      const piece = bytes.subarray(at, at + SUMMED_AT_ONCE);
      this.heap.set(piece, address);
      sum = this.module._ort_crc32(sum, address, piece.byteLength);
    }
    this.module._ort_free(address);
    return sum;
  };

  // --- sessions
  createSession(plan: Uint8Array): number {
    return this.checked(this.module._ort_session_create(this.allocate(plan), plan.byteLength));
  }
  /** True if the session's nodes may run micro-kernels. */
  runsMicrokernels(session: number): boolean {
    return this.module._ort_session_runs_microkernels(session) !== 0;
  }
  /** Loads the rare kernels if nodes of it have such: before prepareSession. */
  async loadRareKernels(session: number): Promise<void> {
    if (this.module._ort_session_has_rare_kernels(session) !== 0) await this.rareKernels.load();
  }
  /** Where weight `index` is wanted in the heap; 0 when it is not. */
  weightAddress(session: number, index: number): number {
    return this.module._ort_session_weight(session, index) >>> 0;
  }
  /** Makes weight `index` the same as another session's weight. */
  shareWeight(session: number, index: number, owner: number, other: number): void {
    this.checked(this.module._ort_session_share_weight(session, index, owner, other));
  }
  weightOnDevice(session: number, index: number, id: number): void {
    this.checked(this.module._ort_session_weight_on_device(session, index, id));
  }
  prepareSession(session: number): void {
    this.checked(this.module._ort_session_prepare(session));
  }
  releaseSession(session: number): void {
    if (!this.crashed) this.module._ort_session_release(session);
  }

  // --- runs
  beginRun(session: number): number {
    return this.checked(this.module._ort_run_begin(session));
  }
  feed(run: number, input: number, dtype: DType, dims: readonly number[], data: Uint8Array): void {
    const address = data.byteLength > 0 ? this.allocate(data) : 0;
    const size = data.byteLength;
    this.checked(this.module._ort_run_feed(run, input, dtype, dims.length, this.dimsOfFeed(dims), address, size));
  }
  /** The feed is on the device of this provider of the plan. */
  feedDevice(run: number, input: number, provider: number, dtype: DType, dims: readonly number[], id: number): void {
    const { _ort_run_feed_device: feed } = this.module;
    this.checked(feed(run, input, provider, dtype, dims.length, this.dimsOfFeed(dims), id));
  }
  /** The address of a feed's dims, valid for the next call: a run has many feeds, one call each. */
  private dimsOfFeed(dims: readonly number[]): number {
    if (dims.length > this.feedDims.room) {
      if (this.feedDims.address !== 0) this.module._ort_free(this.feedDims.address);
      const room = Math.max(16, dims.length);
      this.feedDims = { address: this.allocate(new Uint8Array(4 * room)), room };
    }
    this.module.HEAPU32.set(dims, this.feedDims.address >>> 2);
    return this.feedDims.address;
  }
  /** The following feeds of this input are the container's items. */
  feedContainer(run: number, input: number, kind: CoreContainer['kind'], dtype: DType): void {
    this.checked(this.module._ort_run_feed_container(run, input, kind, dtype));
  }
  /** Walks the plan; resolves at once unless the core waits for the GPU. */
  async execute(run: number): Promise<void> {
    this.thrown = undefined;
    let result = this.module._ort_run_execute(run);
    const { Asyncify } = this.module;
    if (Asyncify.currData)
      result = await new Promise<number>((resolve, reject) => {
        this.giveUp = reject;
        Asyncify.whenDone().then(resolve, reject);
      });
    this.checked(result);
  }
  /** Records the nodes' times; call it before execute. */
  profile(run: number): void {
    this.module._ort_run_profile(run);
  }
  /** Four numbers for each node that ran (abi.h). */
  times(run: number): Float64Array {
    const address = this.module._ort_run_times(run) >>> 0;
    if (address === 0) return new Float64Array(0);
    const { buffer } = this.heap;
    const [count] = new Float64Array(buffer, address, 1);
    return new Float64Array(buffer, address + 8, 4 * count).slice();
  }
  cancel(run: number): void {
    this.module._ort_run_cancel(run);
  }
  replayable(run: number): boolean {
    return this.module._ort_run_replayable(run) === 1;
  }
  /** The inputs of kernels that may have changed since an earlier run; undefined: unknown. */
  refresh(run: number): CoreInput[] | undefined {
    const words = this.words(this.checked(this.module._ort_run_refresh(run)));
    const count = words.next();
    if (count === 0xffffffff) return undefined;
    return Array.from({ length: count }, () => ({ kernel: words.next(), input: words.next(), tensor: words.tensor() }));
  }
  output(run: number, index: number): CoreOutput {
    return this.words(this.checked(this.module._ort_run_output(run, index))).output();
  }
  endRun(run: number): void {
    this.module._ort_run_end(run);
  }

  // --- inside jsepRun
  /** The description of a node's inputs and outputs (abi.h). */
  words(address: number): WordReader {
    return new WordReader(this.module.HEAPU32, address >>> 2);
  }
  declareOutput(context: number, index: number, dtype: DType, dims: readonly number[]): number {
    const id = this.withWords(dims, (pointer) =>
      this.module._ort_jsep_output(context, index, dtype, dims.length, pointer),
    );
    if (id === 0)
      throw (
        this.thrown ??
        new RuntimeError(ErrorCode.runtime_exception, `the core refused output ${index} of shape [${dims}]`)
      );
    return id >>> 0;
  }
  declareView(context: number, index: number, input: number, dims: readonly number[]): void {
    const done = this.withWords(dims, (pointer) =>
      this.module._ort_jsep_output_view(context, index, input, dims.length, pointer),
    );
    if (!done)
      throw new RuntimeError(
        ErrorCode.runtime_exception,
        `the core refused output ${index} as a view of input ${input}`,
      );
  }
  /** Reports why jsepRun fails; returns the code to return. */
  reject(error: unknown): ErrorCode {
    this.thrown = error;
    this.withText(messageOf(error), (text) => this.module._ort_jsep_error(codeOf(error), text));
    return codeOf(error);
  }

  /** Ends the core with the value that a call threw. */
  private crash(thrown: unknown): RuntimeError {
    if (!this.crashed) {
      this.crashed = crashOf(thrown);
      explain(this.crashed, this.whole);
      this.microkernels.end();
      this.giveUp?.(this.crashed);
    }
    return this.crashed;
  }

  /** The work of ImageDecoder, for which the core waits. */
  private async decodeImage(address: number, size: number, format: string): Promise<Picture> {
    try {
      return await decodeImage(this.bytes(address, size), format);
    } catch (error) {
      this.reject(error);
      throw error;
    }
  }

  /** Copies bytes into memory that the core then owns. */
  private allocate(bytes: Uint8Array): number {
    const address = bytes.byteLength < 2 ** 32 ? this.module._ort_malloc(bytes.byteLength) >>> 0 : 0;
    if (address === 0)
      throw new RuntimeError(ErrorCode.out_of_memory, `the core has no ${bytes.byteLength} bytes left`);
    this.heap.set(bytes, address);
    return address;
  }

  private withText<T>(text: string, use: (pointer: number) => T): T {
    const pointer = this.allocate(new TextEncoder().encode(`${text}\0`));
    try {
      return use(pointer);
    } finally {
      this.module._ort_free(pointer);
    }
  }

  private withWords<T>(words: readonly number[], use: (pointer: number) => T): T {
    const pointer = this.allocate(new Uint8Array(Int32Array.from(words).buffer));
    try {
      return use(pointer);
    } finally {
      this.module._ort_free(pointer);
    }
  }

  /**
   * A text with names of a plan, which may not be valid UTF-8: UTF8ToString would skip the text after an invalid byte.
   */
  private text(address: number): string {
    const bytes = this.heap.subarray(address >>> 0);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  /** The result of a call; if it is 0, throws the core's last error. */
  private checked(result: number): number {
    const { thrown } = this;
    this.thrown = undefined;
    if (result !== 0) return result >>> 0;
    const text = this.text(this.module._ort_last_error());
    if (!text) throw thrown ?? new RuntimeError(ErrorCode.fail, 'the core failed and did not say why');
    const said = JSON.parse(text) as {
      code: ErrorCode;
      message: string;
      node?: string;
      op_type?: string;
      provider?: string;
    };
    const error = new RuntimeError(thrown === undefined ? said.code : codeOf(thrown), said.message, {
      node: said.node,
      opType: said.op_type,
      provider: said.provider,
    });
    if (thrown instanceof Error) error.stack = thrown.stack;
    throw error;
  }
}
