// A segment made ready: its uniforms are in one buffer. A draw finds its textures when it is done: by the place of a
// tensor, since another tensor may have had the place before.
import type { Command, CompiledSegment, DispatchCommand, Region } from '../../device/commands';
import { roundUp } from '../../device/memory_plan';
import type { Placement } from '../../device/memory';
import type { ProfileRow } from '../../device/profile';
import type { Gl } from './gl';
import { blockAt, type Block } from './memory';
import type { Profiler } from './profiler';
import type { GlProgram } from './programs';

export type GlCommand = Command<GlProgram>;

interface Place extends Placement<Block> {
  readonly bytes: number;
}

interface Step {
  readonly program?: GlProgram;
  readonly row?: ProfileRow;
  readonly reads: readonly Place[];
  readonly writes: readonly Place[];
  readonly uniforms?: { readonly offset: number; readonly bytes: number };
  readonly once: boolean;
}

export class GlSegment implements CompiledSegment {
  settled = false;
  private readonly steps: readonly Step[];
  private readonly uniforms: WebGLBuffer | undefined;

  constructor(
    private readonly context: Gl,
    commands: readonly GlCommand[],
    placeOf: (id: number) => Placement,
    once?: ReadonlySet<number>,
  ) {
    const at = ({ id, offset = 0, bytes }: Region): Place => {
      const place = blockAt(placeOf(id));
      return { ...place, offset: place.offset + offset, bytes };
    };
    const { buffer, offsets } = this.upload(commands);
    this.uniforms = buffer;
    this.steps = commands.map((command, i): Step => {
      const isOnce = once?.has(i) ?? false;
      if (command.kind === 'copy') return { reads: [at(command.source)], writes: [at(command.target)], once: isOnce };
      const all = command.bindings.map(at);
      return {
        program: command.program,
        row: { kernel: command.program.label, workgroups: command.workgroups, instance: command.instance },
        reads: all.slice(0, -command.written),
        writes: all.slice(-command.written),
        uniforms: command.uniforms && { offset: offsets[i], bytes: roundUp(command.uniforms.byteLength, 16) },
        once: isOnce,
      };
    });
  }

  private upload(commands: readonly GlCommand[]): { buffer: WebGLBuffer | undefined; offsets: number[] } {
    const { gl, uniformAlignment } = this.context;
    let size = 0;
    const given = commands.map((command) => (command as DispatchCommand).uniforms);
    const offsets = given.map((bytes) => {
      const offset = size;
      if (bytes) size += roundUp(bytes.byteLength, uniformAlignment);
      return offset;
    });
    if (size === 0) return { buffer: undefined, offsets };
    const all = new Uint8Array(size);
    given.forEach((bytes, i) => bytes && all.set(bytes, offsets[i]));
    const buffer = gl.createBuffer()!;
    gl.bindBuffer(gl.UNIFORM_BUFFER, buffer);
    gl.bufferData(gl.UNIFORM_BUFFER, all, gl.STATIC_DRAW);
    return { buffer, offsets };
  }

  run(profiler?: Profiler): void {
    for (const step of this.steps) {
      if (step.once && this.settled) continue;
      const { program, row } = step;
      if (program && row && profiler) profiler.dispatch(row, () => this.draw(step, program));
      else if (program) this.draw(step, program);
      else copy(this.context, step.reads[0], step.writes[0], step.reads[0].bytes);
    }
  }

  private draw({ reads, writes, uniforms }: Step, { ready }: GlProgram): void {
    const { gl, counters } = this.context;
    counters.dispatches++;
    const textures = reads.map(({ buffer, offset, bytes }) => buffer.texture(offset, bytes));
    if (uniforms) gl.bindBufferRange(gl.UNIFORM_BUFFER, 0, this.uniforms!, uniforms.offset, uniforms.bytes);
    const targets = writes.map(({ buffer, offset, bytes }) => buffer.target(offset, bytes));
    textures.forEach(({ texture }, i) => {
      gl.activeTexture(gl.TEXTURE0 + i);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    });
    for (const { program, outputs } of ready!) {
      const { width, height } = targets[outputs[0]];
      gl.useProgram(program);
      this.context.textures.attach(outputs.map((i) => targets[i]));
      gl.viewport(0, 0, width, height);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
  }

  async refused(): Promise<number | undefined> {
    return undefined;
  }

  destroy(): void {
    if (this.uniforms) this.context.gl.deleteBuffer(this.uniforms);
  }
}

/** The first bytes of a tensor to another one, whose further bytes stay. */
export function copy(context: Gl, from: Placement<Block>, to: Placement<Block>, bytes: number): void {
  if (to.buffer.continues(to.offset, bytes)) {
    to.buffer.write(to.offset, from.buffer.download(from.offset, bytes));
    return;
  }
  const source = from.buffer.texture(from.offset, bytes);
  context.textures.copy(source, to.buffer.target(to.offset, bytes));
}
