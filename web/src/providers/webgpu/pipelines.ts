// The cache of compute pipelines. The required ones are known when memory is planned (segment_plan.ts): commit compiles
// them all together.
import { ErrorCode } from '../../schema';
import { messageOf, RuntimeError } from '../../errors';
import type { Gpu } from './device';
import { type ShaderBinding, type ShaderRequest, shaderKey, shaderText } from './shader';

export interface Pipeline {
  readonly key: string;
  readonly label: string;
  readonly request: ShaderRequest;
  readonly bindGroupLayout: GPUBindGroupLayout;
  /** Compiles it, unless that is already under way. Rejects with a RuntimeError of code shader. */
  compile(): Promise<GPUComputePipeline>;
  /** Set once it is compiled. */
  ready?: GPUComputePipeline;
  /** The time from the request to the pipeline; others are compiled meanwhile. */
  compileMs?: number;
  /** The compiler's warnings, for tests. */
  warnings(): Promise<string[]>;
}

export class PipelineCache {
  private readonly pipelines = new Map<string, Pipeline>();
  /** The keys of pipelines that are compiled, or being compiled. */
  private readonly started = new Set<string>();
  private readonly layouts = new Map<string, { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout }>();

  constructor(private readonly gpu: Gpu) {}

  get(request: ShaderRequest): Pipeline {
    const key = shaderKey(request);
    let pipeline = this.pipelines.get(key);
    if (!pipeline) {
      pipeline = this.create(key, request);
      this.pipelines.set(key, pipeline);
    }
    return pipeline;
  }

  /** All pipelines compiled so far. */
  list(): Pipeline[] {
    return [...this.pipelines.values()].filter(({ key }) => this.started.has(key));
  }

  private create(key: string, request: ShaderRequest): Pipeline {
    const label = request.shader.name;
    const layout = this.layout(request.bindings, request.uniforms.length > 0);
    let compiled: Promise<GPUComputePipeline> | undefined;
    const pipeline: Pipeline = {
      key,
      label,
      request,
      bindGroupLayout: layout.group,
      compile: () => (compiled ??= this.compile(pipeline, layout.pipeline)),
      // Compiled again on demand: keeping a module for it would use memory of the GPU process.
      warnings: () => {
        const code = shaderText(request);
        return complaints(this.gpu.device.createShaderModule({ label, code }), code, 'warning');
      },
    };
    return pipeline;
  }

  private compile(pipeline: Pipeline, layout: GPUPipelineLayout): Promise<GPUComputePipeline> {
    const { device, counters } = this.gpu;
    const { key, label, request } = pipeline;
    counters.pipelines++;
    this.started.add(key);
    const code = shaderText(request);
    const module = this.module(label, code);
    const compiled = device
      .createComputePipelineAsync({ label, layout, compute: { module, entryPoint: 'main' } })
      .catch(async (error: unknown) => {
        this.pipelines.delete(key);
        this.started.delete(key);
        const cause = await this.gpu.failure(error);
        if (cause !== error) throw cause;
        throw new RuntimeError(ErrorCode.shader, await this.describe(request, module, code, error));
      });
    const start = performance.now();
    compiled.then(
      (ready) => {
        pipeline.ready = ready;
        pipeline.compileMs = performance.now() - start;
      },
      () => undefined,
    );
    return compiled;
  }

  /** Errors are reported where the pipeline is made, so the scope only prevents a second report. */
  private unreported<T>(make: (gpu: Gpu) => T): T {
    const { device } = this.gpu;
    device.pushErrorScope('validation');
    const made = make(this.gpu);
    void device.popErrorScope().catch(() => undefined);
    return made;
  }

  private module(label: string, code: string): GPUShaderModule {
    return this.unreported(({ device }) => device.createShaderModule({ label, code }));
  }

  /** The reason why a shader does not compile; if possible, with the text as its author wrote it. */
  private async describe(
    request: ShaderRequest,
    module: GPUShaderModule,
    code: string,
    error: unknown,
  ): Promise<string> {
    const { name, own } = request.shader;
    let found: string[] = [];
    if (request.hoisted) {
      const written = shaderText({ ...request, hoisted: false });
      found = await complaints(this.module(name, written), written, 'error', own);
    }
    if (found.length === 0) found = await complaints(module, code, 'error', own);
    return `shader ${name} does not compile: ${found.length > 0 ? `\n${found.join('\n')}` : messageOf(error)}`;
  }

  private layout(bindings: readonly ShaderBinding[], uniform: boolean) {
    const key = bindings.map(({ writable }) => (writable ? 'w' : 'r')).join('') + (uniform ? 'u' : '');
    let layout = this.layouts.get(key);
    if (!layout) {
      const types: GPUBufferBindingType[] = bindings.map(({ writable }) =>
        writable ? 'storage' : 'read-only-storage',
      );
      if (uniform) types.push('uniform');
      layout = this.unreported(({ device }) => {
        const group = device.createBindGroupLayout({
          label: key,
          entries: types.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
        });
        return { group, pipeline: device.createPipelineLayout({ label: key, bindGroupLayouts: [group] }) };
      });
      this.layouts.set(key, layout);
    }
    return layout;
  }
}

/** The compiler's messages of a kind, each with its line: in `own`, the part that a user wrote, if it is there. */
async function complaints(
  module: GPUShaderModule,
  code: string,
  kind: GPUCompilationMessageType,
  own?: string,
): Promise<string[]> {
  const lines = code.split('\n');
  const start = own ? code.indexOf(own) : -1;
  const [before, count] = start < 0 ? [0, 0] : [code.slice(0, start).split('\n').length - 1, own!.split('\n').length];
  const place = (line: number): string => {
    if (own === undefined) return `line ${line}`;
    return line > before && line <= before + count ? `line ${line - before}` : `generated line ${line}`;
  };
  const { messages } = await module.getCompilationInfo();
  return messages
    .filter(({ type }) => type === kind)
    .map(
      ({ lineNum, linePos, message }) =>
        `  ${place(lineNum)}:${linePos}: ${message}\n    ${lines[lineNum - 1]?.trim() ?? ''}`,
    );
}
