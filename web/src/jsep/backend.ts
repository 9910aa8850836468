// The JSEP functions of one core: its calls to devices, for the current session.
import { type DType, ErrorCode, Location } from '../schema';
import { RuntimeError } from '../errors';
import type { Core } from '../core/core';
import type { CoreTensor } from '../core/words';
import type { JsepFunctions } from '../core/module';
import { FIRST_VIRTUAL_ID } from '../device/buffers';
import { type CallInput, type HostTest, makeTensor } from '../device/call';
import type { DeviceSession } from '../device/session';
import type { Recorder } from '../device/recorder';
import type { OutputCall, RunEvent, Temp } from '../device/recording';
import { Attributes } from '../contract/attributes';
import { sameContents } from '../contract/elements';
import { answeredAlike, signature } from './signature';

/** Installed once per core; `sessions` are the current sessions on each device, by the provider's index. */
export class JsepBackend implements JsepFunctions {
  sessions: readonly (DeviceSession | undefined)[] = [];

  constructor(private readonly core: Core) {
    core.install(this, this);
  }

  alloc(provider: number, size: number): number {
    return recorderOf(this.owner(provider)).allocate(size);
  }

  free(provider: number, id: number): void {
    // Persistent buffers belong to the page; after the end of a run there is no recording.
    if (id >= FIRST_VIRTUAL_ID) this.sessions[provider]?.recorder?.free(id);
  }

  copy(
    provider: number,
    source: number,
    target: number,
    size: number,
    upload: boolean,
    _dtype: DType,
    address: number,
  ): void {
    const owner = this.owner(provider);
    const recorder = recorderOf(owner);
    if (upload) return recorder.upload(target, this.core.bytes(source, size));
    const words = this.core.words(address);
    const blocks = {
      size,
      count: words.next(),
      source: { id: source, offset: words.next(), step: words.next() },
      target: { id: target, offset: words.next(), step: words.next() },
    };
    recorder.copy(blocks, () => owner.copyBlocks(blocks));
  }

  copyAsync(provider: number, id: number, target: number, size: number): Promise<void> | undefined {
    const owner = this.owner(provider);
    const recorder = recorderOf(owner);
    if (owner.dryRun) {
      this.core.heap.fill(0, target, target + size);
      if (size > 0 && !recorder.bytesOf(id)) recorder.nextSegment();
      return undefined;
    }
    const known = size === 0 ? new Uint8Array(0) : recorder.bytesOf(id);
    if (known) {
      this.core.heap.set(known.subarray(0, size), target);
      return undefined;
    }
    owner.provider.counters.suspensions++;
    return this.download(recorder, id, target, size);
  }

  private async download(recorder: Recorder, id: number, target: number, size: number): Promise<void> {
    const pending = await recorder.commit([{ id, bytes: size }]);
    recorder.nextSegment();
    await pending.finish(([bytes]) => this.core.heap.set(bytes, target));
  }

  createKernel(provider: number, opType: string, id: number, attributes: number, size: number, domain: string): number {
    const owner = this.owner(provider);
    const kernel = owner.findKernel(opType, domain);
    const parsed = kernel.attributes?.(new Attributes(this.core.bytes(attributes, size)));
    owner.kernels.set(id, { kernel, attributes: parsed });
    return ErrorCode.ok;
  }

  releaseKernel(provider: number, id: number): void {
    const owner = this.sessions[provider];
    owner?.kernels.delete(id);
    owner?.lastCalls.delete(id);
  }

  run(provider: number, id: number, context: number): number {
    try {
      this.resolve(this.owner(provider), id, context);
      return ErrorCode.ok;
    } catch (error) {
      return this.core.reject(error);
    }
  }

  private resolve(owner: DeviceSession, id: number, context: number): void {
    const recorder = recorderOf(owner);
    const reader = this.core.words(context);
    const [inputCount, outputCount] = [reader.next(), reader.next()];
    const inputs = Array.from({ length: inputCount }, () => reader.tensor());
    const wants = Array.from({ length: outputCount }, () => reader.next() === 1);
    const words = signature(inputs, wants);
    const recorded = recorder.expect(
      'run',
      (event) => event.kernel === id && sameContents(event.words, words) && this.sameHost(event, inputs),
    );
    if (recorded) for (const output of recorded.outputs) this.give(context, output);
    const event =
      recorded ??
      this.resolveAsBefore(owner, id, context, inputs, words) ??
      this.resolveAnew(owner, id, context, inputs, wants, words);
    owner.checkCall?.(event, (virtual) => recorder.bytesOf(virtual));
  }

  /**
   * Answers with the last run's commands, even if other shapes changed: most of a decoder's nodes read nothing that
   * grows.
   * @returns the call, if it is the same.
   */
  private resolveAsBefore(
    owner: DeviceSession,
    id: number,
    context: number,
    inputs: readonly CoreTensor[],
    words: Uint32Array,
  ): RunEvent | undefined {
    const { lastCalls, boundInPlace, dryRun } = owner;
    const recorder = recorderOf(owner);
    const last = lastCalls.get(id);
    if (!last || dryRun || boundInPlace.has(id) || last.firstId !== recorder.nextId) return undefined;
    const { event, ids } = last;
    if (!sameContents(event.words, words) || !this.sameHost(event, inputs)) return undefined;
    recorder.record(event);
    event.outputs.forEach((output, i) => {
      if (output.view === undefined) recorder.nextId = ids[i]!;
      if (this.give(context, output) !== ids[i]) throw new Error('an output got another id than before');
    });
    recorder.nextId = last.endId;
    return event;
  }

  private resolveAnew(
    owner: DeviceSession,
    id: number,
    context: number,
    inputs: readonly CoreTensor[],
    wants: readonly boolean[],
    words: Uint32Array,
  ): RunEvent {
    const { kernels, unchecked, tiles, dryRun, rowsBefore, lastCalls, boundInPlace } = owner;
    if (dryRun && dryRun.calls-- <= 0) throw new RuntimeError(ErrorCode.cancelled, 'it has a very long loop');
    const recorder = recorderOf(owner);
    const instance = kernels.get(id);
    if (!instance) throw new RuntimeError(ErrorCode.fail, `there is no kernel ${id}`);
    const firstId = recorder.nextId;
    const host = new Map<number, Uint8Array>();
    const outputs: OutputCall[] = [];
    const ids: (number | undefined)[] = [];
    const temps: Temp[] = [];
    const event = {
      kind: 'run' as const,
      kernel: id,
      words,
      host,
      outputs,
      commands: [] as RunEvent['commands'][number][],
      temps,
      tests: [] as HostTest[],
    };
    // Recorded before the allocations that it causes; filled in below.
    recorder.record(event);
    const { commands, hostReads, hostTests } = owner.resolve(
      instance,
      inputs.map((input) => this.callInput(owner, input)),
      wants,
      {
        unchecked,
        tiles,
        rowsBefore,
        output: (index, dtype, dims) => {
          const output = { index, dtype, dims: [...dims] };
          outputs.push(output);
          const given = this.give(context, output)!;
          ids.push(given);
          return given;
        },
        view: (index, view, dims) => {
          const output = { index, view, dtype: inputs[view].dtype, dims: [...dims] };
          outputs.push(output);
          ids.push(this.give(context, output));
        },
        temp: (bytes, ofWeights) => {
          temps.push({ id: recorder.newId(), bytes, ofWeights });
          return temps[temps.length - 1].id;
        },
        boundInPlace: (i, j) => boundInPlace.get(id)?.some(([output, input]) => output === i && input === j) ?? false,
      },
    );
    for (const command of commands) if (command.kind === 'dispatch') command.instance = id;
    event.commands.push(...commands);
    event.tests.push(...hostTests);
    for (const index of hostReads) host.set(index, this.core.bytes(inputs[index].data, inputs[index].bytes));
    if (dryRun || boundInPlace.has(id)) lastCalls.delete(id);
    else lastCalls.set(id, { event, ids, firstId, endId: recorder.nextId });
    return event;
  }

  private give(context: number, { index, dims, dtype, view }: OutputCall): number | undefined {
    if (view === undefined) return this.core.declareOutput(context, index, dtype, dims);
    this.core.declareView(context, index, view, dims);
    return undefined;
  }

  private callInput(
    { provider: { elements } }: DeviceSession,
    { dtype, location, data, bytes, dims }: CoreTensor,
  ): CallInput | undefined {
    if (location === Location.device) return { tensor: makeTensor(elements, data, dtype, dims, 'gpu') };
    if (location === Location.cpu)
      return { tensor: makeTensor(elements, 0, dtype, dims, 'cpu'), bytes: this.core.bytes(data, bytes) };
    return dtype === UNDEFINED ? undefined : { tensor: makeTensor(elements, 0, dtype, dims, 'none') };
  }

  private sameHost(event: RunEvent, inputs: readonly CoreTensor[]): boolean {
    return inputs.every((tensor, i) => answeredAlike(event, i, tensor, this.core));
  }

  private owner(provider: number): DeviceSession {
    const owner = this.sessions[provider];
    if (!owner) throw new RuntimeError(ErrorCode.fail, 'the core asked for a device that the session at work has not');
    return owner;
  }
}

function recorderOf({ recorder }: DeviceSession): Recorder {
  if (!recorder) throw new RuntimeError(ErrorCode.fail, 'the core asked for a device outside a run');
  return recorder;
}

const UNDEFINED: DType = 0;
