// A WebGL 2 context: on an OffscreenCanvas in a worker, on a canvas in a page's own thread.
import { messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { ROW_BITS } from './glsl/fragment';

export const NAME = 'webgl';

export interface ContextOptions {
  readonly powerPreference?: string;
  readonly checkWrites?: boolean;
}

/** There may be none while the browser's GPU process starts again. */
const TRIES = 4;
const DELAY_MS = 400;

/** @throws no_adapter */
export async function openContext(options: ContextOptions): Promise<WebGL2RenderingContext> {
  if (typeof WebGL2RenderingContext === 'undefined') throw noContext('this browser has no WebGL 2 here');
  for (let tries = 1; ; tries++) {
    const gl = askContext(options);
    if (gl && !gl.isContextLost()) {
      const largest = gl.getParameter(gl.MAX_TEXTURE_SIZE) as number;
      if (largest < 2 ** ROW_BITS) throw noContext(`its textures are at most ${largest} wide`);
      return gl;
    }
    if (tries === TRIES) throw noContext('this browser has no WebGL 2 here, or no GPU for it');
    await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
  }
}

function askContext({ powerPreference }: ContextOptions): WebGL2RenderingContext | null {
  const attributes = { alpha: false, antialias: false, depth: false, stencil: false, preserveDrawingBuffer: false };
  const given = powerPreference ? { ...attributes, powerPreference } : attributes;
  try {
    const canvas: OffscreenCanvas | HTMLCanvasElement =
      typeof document === 'undefined' ? new OffscreenCanvas(1, 1) : document.createElement('canvas');
    return (canvas as OffscreenCanvas).getContext('webgl2', given as WebGLContextAttributes);
  } catch (error) {
    throw noContext(messageOf(error));
  }
}

function noContext(why: string): RuntimeError {
  return new RuntimeError(ErrorCode.no_adapter, `WebGL gives no context: ${why}`, { provider: NAME });
}

export function describeContext(gl: WebGL2RenderingContext): object {
  const names = gl.getExtension('WEBGL_debug_renderer_info');
  const renderer = gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER) as string;
  const vendor = gl.getParameter(names ? names.UNMASKED_VENDOR_WEBGL : gl.VENDOR) as string;
  return {
    vendor,
    description: renderer,
    software: /swiftshader|llvmpipe|software/i.test(renderer),
    limits: { maxTextureSize: gl.getParameter(gl.MAX_TEXTURE_SIZE) as number },
  };
}
