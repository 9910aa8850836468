// Programs by their keys: a vertex shader that covers the texture, and a fragment shader for each draw.
import type { Program } from '../../device/commands';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { nextTurn } from '../../turn';
import { type ShaderRequest, shaderKey } from '../webgpu/shader';
import { drawsOf, fragmentText, samplerName } from './glsl/fragment';
import { NAME } from './context';

const VERTEX = `#version 300 es
void main() {
  vec2 corner = vec2(float((gl_VertexID << 1) & 2), float(gl_VertexID & 2));
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}`;

/** A program, and the outputs of a dispatch that it writes. */
export interface Draw {
  readonly program: WebGLProgram;
  readonly outputs: readonly number[];
}

export interface GlProgram extends Program {
  readonly request: ShaderRequest;
  ready?: readonly Draw[];
  compileMs?: number;
}

interface Started {
  readonly program: WebGLProgram;
  readonly shader: WebGLShader;
  readonly text: string;
}

export class Programs {
  private readonly known = new Map<string, GlProgram>();
  private readonly parallel: KHR_parallel_shader_compile | null;
  private readonly vertex: WebGLShader;

  constructor(
    private readonly gl: WebGL2RenderingContext,
    private readonly counters: { pipelines: number },
    private readonly checked: boolean,
  ) {
    this.parallel = gl.getExtension('KHR_parallel_shader_compile');
    this.vertex = this.shader(gl.VERTEX_SHADER, VERTEX);
  }

  get(request: ShaderRequest): GlProgram {
    const key = shaderKey(request);
    let program = this.known.get(key);
    if (!program) {
      let compiling: Promise<unknown> | undefined;
      const made: GlProgram = {
        key,
        label: request.shader.name,
        request,
        compile: () => (compiling ??= this.compile(made)),
      };
      program = made;
      this.known.set(key, program);
    }
    return program;
  }

  private async compile(program: GlProgram): Promise<void> {
    const start = performance.now();
    const { request } = program;
    const draws = drawsOf(request);
    this.counters.pipelines++;
    const started = draws.map((outputs) => this.start(fragmentText(request, outputs, this.checked)));
    const ready: Draw[] = [];
    for (const [i, each] of started.entries())
      ready.push({ program: await this.finish(each, request), outputs: draws[i] });
    program.ready = ready;
    program.compileMs = performance.now() - start;
  }

  private shader(type: number, text: string): WebGLShader {
    const shader = this.gl.createShader(type)!;
    this.gl.shaderSource(shader, text);
    this.gl.compileShader(shader);
    return shader;
  }

  private start(text: string): Started {
    const { gl } = this;
    const shader = this.shader(gl.FRAGMENT_SHADER, text);
    const program = gl.createProgram();
    gl.attachShader(program, this.vertex);
    gl.attachShader(program, shader);
    gl.linkProgram(program);
    return { program, shader, text };
  }

  private async finish({ program, shader, text }: Started, request: ShaderRequest): Promise<WebGLProgram> {
    const { gl, parallel } = this;
    if (parallel)
      while (!gl.getProgramParameter(program, parallel.COMPLETION_STATUS_KHR) && !gl.isContextLost()) await nextTurn();
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      this.known.delete(shaderKey(request));
      const log = (gl.getShaderInfoLog(shader) || gl.getProgramInfoLog(program) || 'no reason given').trim();
      const message = `shader ${request.shader.name} does not compile: ${log}\n${linesOf(log, text)}`;
      throw new RuntimeError(ErrorCode.shader, message, { provider: NAME });
    }
    gl.deleteShader(shader);
    gl.useProgram(program);
    request.bindings.forEach((_, i) => {
      const place = gl.getUniformLocation(program, samplerName(i));
      if (place) gl.uniform1i(place, i);
    });
    const block = gl.getUniformBlockIndex(program, 'Uniforms');
    if (block !== gl.INVALID_INDEX) gl.uniformBlockBinding(program, block, 0);
    return program;
  }
}

/** The lines of the text that a log names. */
function linesOf(log: string, text: string): string {
  const lines = text.split('\n');
  const named = [...log.matchAll(/ERROR: \d+:(\d+)/g)].map(([, number]) => Number(number));
  return [...new Set(named)]
    .slice(0, 5)
    .map((number) => `  ${number}: ${lines[number - 1]}`)
    .join('\n');
}
