// Caches that grow: a decoder's feeds are its earlier outputs. They are kept in buffers with room, into which a step
// writes only its new rows. The step runs as if the whole buffer were its input and output, so that its recording stays
// valid as long as there is room.
import type { DeviceSession } from '../device/session';
import type { Heads } from '../device/provider';
import { RoomyBuffer, RoomyRows } from '../device/roomy_rows';
import { cpuElementSize } from '../contract/elements';
import type { Appended, Tensor } from '../contract/kernel';
import { makeTensor } from '../device/call';
import { DType } from '../schema';
import type { RunEvent } from '../device/recording';
import { inputOf } from '../jsep/signature';
import { isContainer, isOnGpu, type TensorOnCpu, type TensorOnGpu, type Value } from '../wire/values';
import { kernelIds } from './node_times';
import type { PlanInfo } from './plan';
import type { RunOptions, SubmittedRun } from './run_options';

interface Cache {
  /** Index of the model's input. */
  readonly feed: number;
  /** Name of the model's output. */
  readonly name: string;
  readonly kernel: number;
}

/** After this many refused runs in a row, the model's caches must have another use. */
const TOO_MANY = 3;

/** The caches of one session. */
export class GrowingCaches {
  private refused = 0;
  /** By batch, the number of rows before a step, if kernels do not have it from inputs. */
  private readonly rowsBefore = new Map<number, Tensor>();
  /** Feeds that are as long as the caches after the step. */
  private readonly growing: readonly number[] | undefined;

  private constructor(
    private readonly gpuSession: DeviceSession,
    private readonly outputs: readonly string[],
    private readonly caches: readonly Cache[],
    private readonly appended: ReadonlyMap<number, Appended>,
  ) {
    const growing = [...appended.values()].flatMap(({ by }) => ('growing' in by ? [by.growing] : []));
    if (growing.length > 0) this.growing = [...new Set(growing.flat())];
  }

  /** For a model whose kernels append to caches that nothing else reads. */
  static of(plan: PlanInfo, gpuSession: DeviceSession): GrowingCaches | undefined {
    const ids = kernelIds(gpuSession);
    const fed = plan.fedOutputs().filter(({ alone }) => alone);
    const caches: Cache[] = [];
    const appended = new Map<number, Appended>();
    for (const [kernel, instance] of gpuSession.kernels) {
      const found = instance.kernel.appended?.(instance.attributes);
      if (!found) continue;
      const own = found.caches.flatMap(([input, output]) =>
        fed.filter((one) => ids[one.node] === kernel && one.input === input && one.output === output),
      );
      if (own.length !== found.caches.length) return undefined;
      appended.set(kernel, found);
      caches.push(...own.map(({ feed, name }) => ({ feed, name, kernel })));
    }
    return caches.length > 0 ? new GrowingCaches(gpuSession, plan.outputs, caches, appended) : undefined;
  }

  /** The run with the caches in buffers with room; undefined if it is not a step of such caches. */
  enter(feeds: readonly Value[], options: RunOptions): GrowingRun | undefined {
    const { outputs = [], outputsOnGpu = [], bind = {}, graphId } = options;
    if (this.refused >= TOO_MANY || graphId !== undefined || outputsOnGpu.length < this.caches.length) return undefined;
    const [left, bound] = [new Set(outputsOnGpu), new Set(Object.keys(bind))];
    const asked = new Set(outputs.length > 0 ? outputs : this.outputs);
    const pasts = this.caches.map(({ feed }) => feeds[feed]);
    const ids = new Set(feeds.flatMap((feed) => (!isContainer(feed) && isOnGpu(feed) ? [feed.gpuId] : [])));
    const onGpu = feeds.filter((feed) => !isContainer(feed) && isOnGpu(feed)).length;
    const fits =
      ids.size === onGpu &&
      this.caches.every(({ name }) => asked.has(name) && left.has(name) && !bound.has(name)) &&
      pasts.every((past): past is TensorOnGpu => this.mayGrow(past));
    if (!fits || !this.growsByOne(feeds, pasts)) return undefined;
    const buffers = this.buffersOf(pasts);
    if (!this.growing) return new GrowingRun(this.caches, this.appended, feeds, options, buffers);
    const [{ room, filled }] = buffers;
    if (buffers.some((buffer) => buffer.room !== room)) {
      for (const buffer of buffers) buffer.discard();
      return undefined;
    }
    const longer = feeds.map((feed, i) => (this.growing!.includes(i) ? padded(feed as TensorOnCpu, room + 1) : feed));
    const before = this.before(pasts[0].dims[0], filled);
    return new GrowingRun(this.caches, this.appended, longer, options, buffers, before);
  }

  /** True if the feeds that grow with the caches have one more row. */
  private growsByOne(feeds: readonly Value[], pasts: readonly TensorOnGpu[]): boolean {
    const [{ dims }] = pasts;
    const longer = (feed: Value) =>
      !isContainer(feed) && !isOnGpu(feed) && feed.dims[feed.dims.length - 1] === dims[2] + 1;
    const alike = (past: TensorOnGpu) => past.dims[0] === dims[0] && past.dims[2] === dims[2];
    return !this.growing || (pasts.every(alike) && this.growing.every((i) => longer(feeds[i])));
  }

  /** Writes the number of rows of each batch. */
  private before(batch: number, rows: number): Tensor {
    const { provider, memory } = this.gpuSession;
    const { buffers, elements } = provider;
    let tensor = this.rowsBefore.get(batch);
    if (!tensor) {
      const id = buffers.allocate(4 * batch, memory.tensors, 'rows before');
      tensor = makeTensor(elements, id, DType.int32, [batch], 'gpu');
      this.rowsBefore.set(batch, tensor);
    }
    provider.write(buffers.get(tensor.id), new Uint8Array(new Int32Array(batch).fill(rows).buffer));
    return tensor;
  }

  release(): void {
    for (const { id } of this.rowsBefore.values()) this.gpuSession.provider.buffers.free(id);
    this.rowsBefore.clear();
  }

  /** Records if the run used growing caches. */
  note(was: boolean): void {
    this.refused = was ? 0 : this.refused + 1;
  }

  private mayGrow(past: Value): past is TensorOnGpu {
    if (isContainer(past) || !isOnGpu(past) || past.dims.length !== 4 || past.dims.includes(0)) return false;
    return RoomyBuffer.mayHold(this.gpuSession.provider, this.headsOf(past), past.dims[2] + 1);
  }

  private headsOf({ dtype, dims }: TensorOnGpu): Heads {
    return { count: dims[0] * dims[1], rowBytes: dims[3] * this.gpuSession.provider.elements.size(dtype) };
  }

  private buffersOf(pasts: readonly TensorOnGpu[]): RoomyBuffer[] {
    const buffers: RoomyBuffer[] = [];
    try {
      for (const past of pasts) buffers.push(this.bufferOf(past));
      return buffers;
    } catch (error) {
      for (const buffer of buffers) buffer.discard();
      throw error;
    }
  }

  /** The buffer with room whose used part is exactly the tensor; otherwise a new one that begins with it. */
  private bufferOf(past: TensorOnGpu): RoomyBuffer {
    const { provider, memory } = this.gpuSession;
    const [heads, rows] = [this.headsOf(past), past.dims[2]];
    const known = provider.buffers.later(past.gpuId);
    if (known instanceof RoomyRows && known.rows === rows && rows < known.of.room) {
      const { filled, heads: has } = known.of;
      if (filled === rows && has.count === heads.count && has.rowBytes === heads.rowBytes) return known.of;
    }
    return RoomyBuffer.of(provider, memory.tensors, heads, past.gpuId, rows);
  }
}

/** Padded with zeros along the last axis, to `length`. */
function padded({ dtype, dims, data }: TensorOnCpu, length: number): TensorOnCpu {
  const [row, to] = [dims[dims.length - 1], length].map((count) => count * cpuElementSize(dtype)!);
  const longer = new Uint8Array((data.length / row) * to);
  for (let from = 0, at = 0; from < data.length; from += row, at += to) longer.set(data.subarray(from, from + row), at);
  return { dtype, dims: [...dims.slice(0, -1), length], data: longer };
}

/** The bytes that were fed or uploaded to an id of a recording. */
export type BytesOf = (id: number) => Uint8Array | undefined;

/** A run on whole buffers, in place of one that appends to them. */
export class GrowingRun {
  readonly feeds: readonly Value[];
  readonly options: RunOptions;
  /** The number of rows of each cache. */
  private readonly rows: readonly number[];
  /** By kernel, the number of rows after the run. */
  private readonly totals = new Map<number, number>();

  constructor(
    private readonly caches: readonly Cache[],
    private readonly appended: ReadonlyMap<number, Appended>,
    given: readonly Value[],
    options: RunOptions,
    private readonly buffers: readonly RoomyBuffer[],
    /** See Context. */
    readonly rowsBefore?: Tensor,
  ) {
    this.rows = caches.map(({ feed }) => (given[feed] as TensorOnGpu).dims[2]);
    const feeds = [...given];
    const bind: { [name: string]: TensorOnGpu } = { ...options.bind };
    caches.forEach(({ feed, name }, i) => {
      const { dtype, dims } = feeds[feed] as TensorOnGpu;
      const [batch, heads, , size] = dims;
      feeds[feed] = bind[name] = { dtype, dims: [batch, heads, buffers[i].room, size], gpuId: buffers[i].id };
    });
    this.feeds = feeds;
    this.options = {
      ...options,
      bind,
      outputsOnGpu: options.outputsOnGpu?.filter((name) => !Object.hasOwn(bind, name)),
    };
  }

  /** Throws unless a kernel's call appends exactly the new rows after the existing ones. */
  check({ kernel, words, tests }: RunEvent, bytesOf: BytesOf): void {
    const appended = this.appended.get(kernel);
    if (!appended) return;
    const { by } = appended;
    const before = this.caches.flatMap((cache, i) => (cache.kernel === kernel ? [this.rows[i]] : []));
    if ('growing' in by) {
      const { dims } = inputOf(words, 1)!;
      if (dims[dims.length - 2] !== 1) throw new Error('more than one row is appended to the caches');
      this.totals.set(kernel, before[0] + 1);
      return;
    }
    const bytes = bytesOf(inputOf(words, by.lengths)!.data);
    const total = tests.find(({ index }) => index === by.total)?.seen[0];
    const count = inputOf(words, 0)!.dims[1];
    const lengths = bytes && new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
    const appends =
      total !== undefined &&
      lengths?.every((last) => last + 1 <= total && before.every((rows) => last + 1 - count >= rows));
    if (!appends) throw new Error('the caches are not appended to');
    this.totals.set(kernel, total);
  }

  /** The run is submitted: its feeds and the new rows are now separate tensors, its outputs. */
  outputsOf(run: SubmittedRun): SubmittedRun {
    const made = this.caches.map(({ name, kernel, feed }, i): [string, TensorOnGpu] => {
      const { dtype, dims } = this.feeds[feed] as TensorOnGpu;
      const total = this.totals.get(kernel)!;
      const [batch, heads, , size] = dims;
      return [name, { dtype, dims: [batch, heads, total, size], gpuId: this.buffers[i].add(total) }];
    });
    return {
      finish: async (start) => {
        try {
          const { outputs, info } = await run.finish(start);
          return { outputs: { ...outputs, ...Object.fromEntries(made) }, info };
        } catch (error) {
          made.forEach(([, { gpuId }], i) => this.buffers[i].provider.buffers.free(gpuId));
          throw error;
        }
      },
    };
  }

  /** The run was not submitted. */
  discard(): void {
    for (const buffer of this.buffers) buffer.discard();
  }
}
