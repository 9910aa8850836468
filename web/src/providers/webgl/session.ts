// A session on a WebGL context.
import { type Kernel, KernelError } from '../../contract/kernel';
import { Arena } from '../../device/arena';
import { type Blocks, copiesOf } from '../../device/blocks';
import type { CallInput, Host, Resolved } from '../../device/call';
import type { Command, DispatchCommand } from '../../device/commands';
import type { Placement } from '../../device/memory';
import type { RunErrors, SessionMemory, Submission } from '../../device/provider';
import { DeviceSession } from '../../device/session';
import { checkedBytes, resolveKernel } from '../webgpu/resolve';
import type { GlDevice } from './device';
import { perTexel } from './glsl/fragment';
import { blockAt } from './memory';
import type { GlProgram } from './programs';
import { Profiler } from './profiler';
import { findKernel } from './registry';
import { copy, type GlCommand, GlSegment } from './segment';

export class GlSession extends DeviceSession {
  declare readonly provider: GlDevice;
  readonly memory: SessionMemory;

  constructor(provider: GlDevice) {
    super(provider, false);
    const arena = new Arena(provider.memory, provider.limits.buffer);
    this.memory = {
      arena,
      tensors: provider.tensors,
      get bytes() {
        return arena.bytes + arena.bytesOfWeights;
      },
      clear() {},
      destroy: () => arena.destroy(),
    };
  }

  findKernel(op: string, domain: string): Kernel {
    return findKernel(op, domain);
  }

  resolve(
    { kernel, attributes }: { readonly kernel: Kernel; readonly attributes: unknown },
    inputs: readonly (CallInput | undefined)[],
    wants: readonly boolean[],
    host: Host,
  ): Resolved {
    for (const { tensor } of inputs.filter((input) => input !== undefined))
      if (tensor.location === 'gpu') checkedBytes(kernel.op, tensor, this.provider);
    const resolved = resolveKernel(kernel, attributes, inputs, wants, host, this.provider);
    const commands = resolved.commands.map((command) => asDraw(command as GlCommand, kernel.op));
    return { ...resolved, commands };
  }

  copyBlocks(blocks: Blocks): readonly Command[] {
    return copiesOf(blocks);
  }

  asPlanned(commands: readonly Command[]): Command[] {
    return [...commands];
  }

  build(commands: readonly Command[], placeOf: (id: number) => Placement, once?: ReadonlySet<number>): GlSegment {
    return new GlSegment(this.provider.context, commands as readonly GlCommand[], placeOf, once);
  }

  submit({ segment, keep, read, timed }: Submission) {
    const { context, counters, readback } = this.provider;
    const drawn = segment as GlSegment;
    counters.submits++;
    const times = timed && new Profiler(context, timed);
    if (times) times.run(() => drawn.run(times));
    else drawn.run();
    for (const { source, target, bytes } of keep) copy(context, blockAt(source), blockAt(target), bytes);
    return { pending: readback.begin(read), times };
  }

  errors(): RunErrors {
    const { provider } = this;
    let made = false;
    const found = async () => {
      provider.ensureAlive();
      return made ? provider.context.takeErrors() : [];
    };
    return {
      untold: false,
      during: (making, work) => {
        made ||= making;
        return work();
      },
      found: () => {
        provider.ensureAlive();
        return made ? found() : undefined;
      },
      foundLate: found,
    };
  }
}

/** The command, for which no texture is read and written at once. Throws if a thread writes others' elements. */
function asDraw(command: GlCommand, op: string): Command {
  if (command.kind === 'copy') {
    if ((command.source.offset ?? 0) + (command.target.offset ?? 0) > 0) throw outside(op, 'a copy of parts');
    return command;
  }
  const { program, bindings, written } = command;
  const threads = threadsOf(command);
  const outputs = program.request.bindings.slice(-written);
  if (bindings.some(({ offset = 0 }) => offset > 0)) throw outside(op, 'parts of tensors');
  outputs.forEach((binding, i) => {
    const texels = bindings[bindings.length - written + i].bytes / 16;
    if (threads === undefined || Math.max(1, Math.ceil(threads / perTexel(binding))) !== texels)
      throw outside(op, `threads of ${program.label} that write more elements than one`);
  });
  return { ...command, alias: false, inPlace: [] };
}

function outside(op: string, what: string): KernelError {
  return new KernelError(`${op} needs ${what}, which WebGL has not; place the node on wasm`, true);
}

/** How many threads of a dispatch do something. */
function threadsOf({ program, uniforms }: DispatchCommand<GlProgram>): number | undefined {
  const field = program.request.uniforms.findIndex(({ name }) => name === 'count');
  if (field < 0 || !uniforms) return undefined;
  return new DataView(uniforms.buffer, uniforms.byteOffset).getUint32(field * 4, true);
}
