// The commands of a segment in the form of its memory plan: some with an output in the place of an input, some with
// read_write bindings.
import { FIRST_VIRTUAL_ID } from '../../device/buffers';
import type { Pipeline, PipelineCache } from './pipelines';
import type { DispatchCommand } from '../../device/commands';
import type { GpuCommand } from './segment';
import type { InPlace, SegmentPlan } from '../../device/segment_plan';

/** @param kept tensors that are separate from all others, like weights. */
export function asPlanned(
  commands: readonly GpuCommand[],
  { inPlace, aliased }: Pick<SegmentPlan, 'inPlace' | 'aliased'>,
  kept: ReadonlySet<number>,
  pipelines: PipelineCache,
): GpuCommand[] {
  return commands.map((command, i) => {
    const pair = inPlace.get(i);
    return command.kind === 'copy' || !(pair || aliased.has(i))
      ? command
      : variant(command, pair, aliased.has(i), kept, pipelines);
  });
}

function variant(
  command: DispatchCommand<Pipeline>,
  pair: InPlace | undefined,
  alias: boolean,
  kept: ReadonlySet<number>,
  pipelines: PipelineCache,
): DispatchCommand<Pipeline> {
  const { bindings, written } = command;
  const { request } = command.program;
  const reads = bindings.length - written;
  // Weights and similar tensors keep their bindings: nothing is written next to them.
  const lies = (id: number) => id >= FIRST_VIRTUAL_ID && !kept.has(id);
  const declared = request.bindings.map((binding, k) =>
    alias && k < reads && lies(bindings[k].id) ? { ...binding, writable: true } : binding,
  );
  const inPlace = pair && { input: request.bindings[pair[0]].name, output: request.bindings[reads + pair[1]].name };
  const rest = <T>(list: readonly T[]) => list.filter((_, k) => k !== pair?.[0]);
  return {
    ...command,
    program: pipelines.get({ ...request, bindings: rest(declared), inPlace }),
    bindings: rest(bindings),
  };
}
