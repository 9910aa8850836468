// Compiles the pipelines of a session before its first run: a walk of the plan resolves every kernel and runs none on
// the GPU.
import type { CpuMeans } from '../core/microkernels';
import { messageOf } from '../errors';
import { Arena } from '../device/arena';
import { storageBytes } from '../device/memory_plan';
import { type CompiledShader, type CompileProgress, compilePrograms } from '../device/commands';
import type { DeviceSession } from '../device/session';
import { cpuElementSize, elementCount } from '../contract/elements';
import { Recorder } from '../device/recorder';
import { Recording } from '../device/recording';
import { Location } from '../schema';
import { DEVICE, type PlanInfo } from './plan';
import type { LoadedCore, Runtime } from './runtime';

/**
 * Only if all input shapes are known. Feeds and results of the GPU are zeros here, so a model whose shapes depend on
 * contents may fail or take another course: its pipelines are then compiled in the first run, like those of dynamic
 * models. Loops may never end, since the values that would end them are not computed: only the calls that a walk has
 * made by then are compiled.
 */
export async function compileEarly(
  plan: PlanInfo,
  { core, jsep }: LoadedCore,
  session: number,
  gpuSession: DeviceSession,
  wasm: CpuMeans,
  runtime: Runtime,
  progress: CompileProgress,
): Promise<CompiledShader[]> {
  if (
    plan.inputs.some(({ dtype, dims }) => !dims || dims.some((dim) => dim < 0) || cpuElementSize(dtype) === undefined)
  )
    return [];
  const recording = new Recording('early');
  const survivors = new Set<number>();
  await runtime.exclusive(async () => {
    const run = core.beginRun(session);
    core.microkernels.use(wasm);
    jsep.sessions = [undefined, gpuSession];
    gpuSession.recorder = new Recorder(gpuSession, recording, gpuSession.errors(true));
    gpuSession.recorder.byShapes = () => core.replayable(run);
    // A loop on the CPU calls no kernels, but pauses.
    const late = setTimeout(() => core.cancel(run), MOST_MS);
    gpuSession.dryRun = { calls: CALLS + plan.nodes().length };
    try {
      plan.inputs.forEach(({ dtype, dims, onCpu, onGpu }, i) => {
        const count = elementCount(dims!);
        if (onCpu || !onGpu) core.feed(run, i, dtype, dims!, new Uint8Array(count * cpuElementSize(dtype)!));
        const bytes = storageBytes(count * gpuSession.provider.elements.size(dtype));
        if (onGpu) core.feedDevice(run, i, DEVICE, dtype, dims!, gpuSession.recorder!.feed(i, NOTHING, bytes));
      });
      await core.execute(run);
      plan.outputs.forEach((_, i) => {
        const output = core.output(run, i);
        if (!('kind' in output) && output.location === Location.device) survivors.add(output.data);
      });
    } catch (error) {
      runtime.log(1, 'session', `compiled only part of ${plan.modelName || 'the model'} early: ${messageOf(error)}`);
    } finally {
      clearTimeout(late);
      gpuSession.dryRun = undefined;
      gpuSession.recorder = undefined;
      core.endRun(run);
    }
  });
  const arena = new Arena(WITHOUT_BUFFERS, gpuSession.provider.limits.buffer);
  const last = recording.segments.length - 1;
  const commands = recording.segments.flatMap((_, i) =>
    recording.place(i, arena, gpuSession, i === last ? survivors : undefined),
  );
  return compilePrograms(commands, progress);
}

/**
 * A walk with more calls of kernels than nodes repeats itself in loops: it would find nothing new, and record without
 * an end.
 */
const CALLS = 32768;
const MOST_MS = 10_000;

/** The memory plan determines the pipelines, so it is made as for the run, but without buffers. */
const WITHOUT_BUFFERS: ConstructorParameters<typeof Arena>[0] = {
  acquire: (bytes) => ({ size: storageBytes(bytes) }),
  release() {},
};

const NOTHING = new Uint8Array(0);
