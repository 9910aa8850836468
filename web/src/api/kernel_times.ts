// Times of kernels, reported after each run: `env.webgpu.profiling`.
import type { RunInfo } from '../session/run_options';
import { env } from './env';

export function kernelsWanted(): boolean {
  const { profiling, profilingMode } = env.webgpu;
  return (profiling.mode ?? profilingMode) === 'default';
}

/** Calls `env.webgpu.profiling.ondata`, or writes to the console, for each kernel. */
export function tellKernels({ profile = [] }: RunInfo): void {
  if (!kernelsWanted()) return;
  const tell = env.webgpu.profiling.ondata ?? ((data) => console.log(`py_ort: ${data.kernelName} ${data.programName}`));
  for (const { kernel, instance = -1, node = '', op_type = '', start_ms, ms } of profile) {
    if (ms === undefined || start_ms === undefined) continue;
    tell({
      version: 1,
      inputsMetadata: [],
      outputsMetadata: [],
      kernelId: instance,
      kernelType: op_type,
      kernelName: node,
      programName: kernel,
      startTime: Math.round(start_ms * 1e6),
      endTime: Math.round((start_ms + ms) * 1e6),
    });
  }
}
