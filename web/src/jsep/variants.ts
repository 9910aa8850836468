// The commands of a segment as its memory plan wants them: some with an output in the place of an input, some with
// read_write bindings.
import { FIRST_VIRTUAL_ID } from '../providers/webgpu/buffers';
import type { PipelineCache } from '../providers/webgpu/pipelines';
import type { Command, DispatchCommand } from '../providers/webgpu/segment';
import type { Access, InPlace, SegmentPlan } from '../device/segment_plan';

export function accessOf(command: Command): Access {
  if (command.kind === 'copy') return { reads: [command.source.id], writes: [command.target.id] };
  const ids = command.bindings.map(({ id }) => id);
  const { pipeline, written, alias, inPlace } = command;
  return { reads: ids.slice(0, -written), writes: ids.slice(-written), group: pipeline.key, alias, inPlace };
}

/** @param kept tensors that lie apart from all others, as weights do. */
export function asPlanned(
  commands: readonly Command[],
  { inPlace, aliased }: Pick<SegmentPlan, 'inPlace' | 'aliased'>,
  kept: ReadonlySet<number>,
  pipelines: PipelineCache,
): Command[] {
  return commands.map((command, i) => {
    const pair = inPlace.get(i);
    return command.kind === 'copy' || !(pair || aliased.has(i))
      ? command
      : variant(command, pair, aliased.has(i), kept, pipelines);
  });
}

function variant(
  command: DispatchCommand,
  pair: InPlace | undefined,
  alias: boolean,
  kept: ReadonlySet<number>,
  pipelines: PipelineCache,
): DispatchCommand {
  const { bindings, written } = command;
  const { request } = command.pipeline;
  const reads = bindings.length - written;
  // Weights and the like keep their bindings: nothing is written next to them.
  const lies = (id: number) => id >= FIRST_VIRTUAL_ID && !kept.has(id);
  const declared = request.bindings.map((binding, k) =>
    alias && k < reads && lies(bindings[k].id) ? { ...binding, writable: true } : binding,
  );
  const inPlace = pair && { input: request.bindings[pair[0]].name, output: request.bindings[reads + pair[1]].name };
  const rest = <T>(list: readonly T[]) => list.filter((_, k) => k !== pair?.[0]);
  return {
    ...command,
    pipeline: pipelines.get({ ...request, bindings: rest(declared), inPlace }),
    bindings: rest(bindings),
  };
}
