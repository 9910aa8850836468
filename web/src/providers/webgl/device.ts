// A WebGL 2 context as a device.
import { ElementForms } from '../../contract/elements';
import type { DeviceTraits } from '../../contract/kernel';
import { BufferTable } from '../../device/buffers';
import { newCounters } from '../../device/counters';
import { roundUp } from '../../device/memory_plan';
import type { MemoryCache, Placement } from '../../device/memory';
import type { OpenDevice } from '../../device/module';
import type { DeviceSession } from '../../device/session';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { describeContext, NAME } from './context';
import { Block, blockAt } from './memory';
import { Programs } from './programs';
import { Readback } from './readback';
import { copy } from './segment';
import { Textures } from './textures';

export class GlDevice implements OpenDevice {
  readonly name = NAME;
  readonly counters = newCounters();
  readonly elements = new ElementForms({ f16: false });
  readonly buffers = new BufferTable<Block>();
  readonly memory: MemoryCache<Block> = {
    acquire: (bytes) => this.makeMemory('', bytes),
    acquireZeros: (bytes) => this.makeMemory('', bytes),
    release: (block) => block.destroy(),
  };
  readonly limits: { readonly buffer: number; readonly binding: number };
  readonly textures: Textures;
  readonly pipelines: Programs;
  readonly readback: Readback;
  readonly description: object;
  /** As kernels see it: a thread is a fragment. */
  readonly gpu: {
    readonly traits: DeviceTraits;
    readonly traitsForLarge: DeviceTraits;
    readonly elements: ElementForms;
    readonly device: { readonly limits: { readonly maxBufferSize: number } };
  };
  readonly uniformAlignment: number;
  lost: string | undefined;

  constructor(
    readonly gl: WebGL2RenderingContext,
    private readonly newSession: (device: GlDevice) => DeviceSession,
  ) {
    this.textures = new Textures(gl);
    this.pipelines = new Programs(gl, this.counters);
    this.readback = new Readback(this);
    this.description = describeContext(gl);
    const { largest } = this.textures;
    this.limits = { buffer: largest, binding: largest };
    const traits = traitsOf(gl, largest);
    const device = { limits: { maxBufferSize: largest } };
    this.gpu = { traits, traitsForLarge: traits, elements: this.elements, device };
    this.uniformAlignment = gl.getParameter(gl.UNIFORM_BUFFER_OFFSET_ALIGNMENT) as number;
    gl.canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault();
      this.lost ??= (event as WebGLContextEvent).statusMessage || 'the browser did not say why';
    });
    gl.bindVertexArray(gl.createVertexArray());
    for (const state of [gl.BLEND, gl.DITHER, gl.DEPTH_TEST, gl.SCISSOR_TEST]) gl.disable(state);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
  }

  get bytes(): number {
    return this.buffers.bytes;
  }

  session(): DeviceSession {
    return this.newSession(this);
  }

  ensureAlive(): void {
    if (this.lost === undefined && this.gl.isContextLost()) this.lost = 'the browser did not say why';
    if (this.lost !== undefined)
      throw new RuntimeError(ErrorCode.device_lost, `the WebGL context was lost: ${this.lost}`, { provider: NAME });
  }

  async failure(error: unknown): Promise<unknown> {
    this.ensureAlive();
    return error;
  }

  complaint(messages: readonly string[]): RuntimeError {
    const noMemory = messages.some((message) => message.includes('OUT_OF_MEMORY'));
    const code = noMemory ? ErrorCode.out_of_memory : ErrorCode.runtime_exception;
    return new RuntimeError(code, messages.join('; '), { provider: NAME });
  }

  read(id: number, bytes: number): Promise<Uint8Array> {
    return this.readback.begin([{ ...this.buffers.get(id), bytes }]).finish(([part]) => part.slice());
  }

  write(place: Placement, bytes: Uint8Array): void {
    const { buffer, offset } = blockAt(place);
    buffer.write(offset, bytes);
  }

  allocate(bytes: number): number {
    return this.buffers.allocate(bytes, this.memory);
  }

  async copy(source: number, target: number, bytes: number): Promise<void> {
    copy(this, this.buffers.get(source), this.buffers.get(target), bytes);
  }

  makeMemory(_label: string, bytes: number): Block {
    this.counters.buffers++;
    return new Block(roundUp(bytes, 16), this.textures);
  }

  copyRows(): never {
    throw new RuntimeError(ErrorCode.not_implemented, 'provider "webgl" has no caches that grow', { provider: NAME });
  }

  /** Errors of the context since they were last taken. The browser answers late: not for every run. */
  takeErrors(): string[] {
    const { gl } = this;
    const found: string[] = [];
    const names = ['INVALID_ENUM', 'INVALID_VALUE', 'INVALID_OPERATION', 'INVALID_FRAMEBUFFER_OPERATION'] as const;
    for (let error = gl.getError(); error !== gl.NO_ERROR && found.length < 8; error = gl.getError()) {
      if (error === gl.CONTEXT_LOST_WEBGL) break;
      const name = error === gl.OUT_OF_MEMORY ? 'OUT_OF_MEMORY' : names.find((each) => gl[each] === error);
      found.push(`WebGL: ${name ?? error}`);
    }
    return found;
  }

  close(): void {
    this.lost ??= 'it was closed';
    this.gl.getExtension('WEBGL_lose_context')?.loseContext();
  }
}

/** Threads know nothing of each other, and each writes the element of its own index only. */
function traitsOf(gl: WebGL2RenderingContext, largest: number): DeviceTraits {
  return {
    software: false,
    slowCompiler: true,
    f16: false,
    subgroups: false,
    bytesFrom: Infinity,
    maxWorkgroupsPerDimension: 2 ** 31 - 1,
    maxStorageBuffersPerStage: (gl.getParameter(gl.MAX_TEXTURE_IMAGE_UNITS) as number) + 1,
    maxStorageBindingSize: largest,
    maxInvocations: 1,
    maxWorkgroupStorage: 0,
    ownElement: true,
  };
}
