// An open context, as all that works with it shares it.
import { newCounters } from '../../device/counters';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { NAME } from './context';
import { Textures } from './textures';

export class Gl {
  readonly counters = newCounters();
  readonly textures: Textures;
  readonly uniformAlignment: number;
  /** Why it was lost; undefined while it is alive. */
  lost: string | undefined;

  constructor(readonly gl: WebGL2RenderingContext) {
    this.textures = new Textures(gl);
    this.uniformAlignment = gl.getParameter(gl.UNIFORM_BUFFER_OFFSET_ALIGNMENT) as number;
    gl.canvas.addEventListener('webglcontextlost', (event) => {
      this.lost ??= (event as WebGLContextEvent).statusMessage || UNTOLD;
    });
    gl.bindVertexArray(gl.createVertexArray());
    for (const state of [gl.BLEND, gl.DITHER, gl.DEPTH_TEST, gl.SCISSOR_TEST]) gl.disable(state);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
  }

  /** @throws device_lost */
  ensureAlive(): void {
    if (this.gl.isContextLost()) this.lost ??= UNTOLD;
    if (this.lost !== undefined)
      throw new RuntimeError(
        ErrorCode.device_lost,
        `the WebGL context was lost: ${this.lost}: create the session again`,
        { provider: NAME },
      );
  }

  /** Errors since they were last taken. The browser answers late: not for every run. */
  takeErrors(): string[] {
    const { gl } = this;
    const found: string[] = [];
    const names = ['INVALID_ENUM', 'INVALID_VALUE', 'INVALID_OPERATION', 'INVALID_FRAMEBUFFER_OPERATION'] as const;
    for (let error = gl.getError(); error !== gl.NO_ERROR && found.length < MOST_ERRORS; error = gl.getError()) {
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

const UNTOLD = 'the browser did not say why';
const MOST_ERRORS = 8;
