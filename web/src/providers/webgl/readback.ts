// From textures to JavaScript, without a wait of the thread: into a buffer, and out of it behind a fence.
import type { PendingReadback, Submission } from '../../device/provider';
import { nextTurn } from '../../turn';
import type { Gl } from './gl';
import { blockAt } from './memory';
import { padded } from './pieces';
import { readBytes } from './textures';

/** A short run is waited for turn by turn; a long one leaves the processor to whoever renders. */
const SPIN_MS = 20;

export class Readback {
  private readonly idle: { readonly buffer: WebGLBuffer; readonly size: number }[] = [];

  constructor(private readonly context: Gl) {}

  /** Begins to read what was drawn so far. */
  begin(read: Submission['read']): PendingReadback {
    const { gl, textures, counters } = this.context;
    const parts = read.map((place) => {
      const { buffer, offset } = blockAt(place);
      const texture = buffer.held(offset, place.bytes);
      if (place.bytes === 0 || !texture) return { bytes: padded(buffer.bytes(offset, place.bytes), place.bytes) };
      return { texture, at: 0, bytes: place.bytes };
    });
    counters.downloads += read.length;
    let size = 0;
    for (const part of parts)
      if (part.texture) {
        part.at = size;
        size += readBytes(part.texture, part.bytes);
      }
    if (size === 0) return { finish: async (use) => use(parts.map(({ bytes }) => bytes as Uint8Array)) };
    const staging = this.take(size);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, staging.buffer);
    for (const part of parts) if (part.texture) textures.read(part.texture, part.bytes, part.at);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    return {
      finish: async (use) => {
        await this.passed(fence);
        const all = new Uint8Array(size);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, staging.buffer);
        gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, all);
        gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
        this.give(staging);
        return use(parts.map((part) => (part.texture ? all.subarray(part.at, part.at + part.bytes) : part.bytes)));
      },
    };
  }

  /** Waits for the fence, whose state changes between turns of the event loop only. */
  private async passed(fence: WebGLSync | null): Promise<void> {
    const { gl } = this.context;
    const begun = performance.now();
    for (;;) {
      this.context.ensureAlive();
      if (!fence) return;
      const state = gl.clientWaitSync(fence, 0, 0);
      if (state === gl.ALREADY_SIGNALED || state === gl.CONDITION_SATISFIED) break;
      if (performance.now() - begun < SPIN_MS) await nextTurn();
      else await new Promise((resolve) => setTimeout(resolve, 1));
    }
    gl.deleteSync(fence);
  }

  private take(size: number): { readonly buffer: WebGLBuffer; readonly size: number } {
    const { gl } = this.context;
    const found = this.idle.findIndex((each) => each.size >= size);
    if (found >= 0) return this.idle.splice(found, 1)[0];
    const small = this.idle.pop();
    if (small) gl.deleteBuffer(small.buffer);
    const buffer = gl.createBuffer()!;
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
    gl.bufferData(gl.PIXEL_PACK_BUFFER, size, gl.STREAM_READ);
    return { buffer, size };
  }

  private give(staging: { readonly buffer: WebGLBuffer; readonly size: number }): void {
    if (this.idle.length < 4) this.idle.push(staging);
    else this.context.gl.deleteBuffer(staging.buffer);
  }
}
