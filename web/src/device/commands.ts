// The commands of kernels for a device, and their compiled form.
import type { Tiling } from '../contract/kernel';
import type { Access, InPlace } from './segment_plan';

/** The program of a dispatch: a pipeline, for example. */
export interface Program {
  /** Equal keys mean equal programs. */
  readonly key: string;
  /** For logs and profiles. */
  readonly label: string;
  /** Compiles it, unless that is already under way. Rejects with a RuntimeError of code shader. */
  compile(): Promise<unknown>;
  /** Set once it is compiled. */
  readonly ready?: unknown;
  /** The time from the request to the program; others are compiled meanwhile. */
  readonly compileMs?: number;
}

/** A kernel's command to the device. Ids are virtual until it is built. */
export type Command<P extends Program = Program> = DispatchCommand<P> | CopyCommand;

export interface DispatchCommand<P extends Program = Program> {
  readonly kind: 'dispatch';
  readonly program: P;
  /** In binding order: inputs, then outputs. */
  readonly bindings: readonly Region[];
  /** Number of bindings, at the end, that are written. */
  readonly written: number;
  readonly uniforms: Uint8Array | undefined;
  readonly workgroups: readonly [number, number, number];
  /** The kernel instance that issued it, for profiles. */
  instance?: number;
  /** For profiles, too. */
  readonly tiling?: Tiling;
  /** Its inputs and outputs may be in one buffer. */
  readonly alias?: boolean;
  /** Pairs of a binding that is read and a written one in whose place it may be. */
  readonly inPlace?: readonly InPlace[];
}

export interface CopyCommand {
  readonly kind: 'copy';
  readonly source: Region;
  readonly target: Region;
}

export interface Region {
  readonly id: number;
  /** Bytes before it in the tensor's memory, 0 by default: a multiple of 256, of 4 in copies. */
  readonly offset?: number;
  /** A multiple of 16, of 4 in copies. */
  readonly bytes: number;
}

/** A command's accesses, for a memory plan. */
export function accessOf(command: Command): Access {
  if (command.kind === 'copy') return { reads: [command.source.id], writes: [command.target.id] };
  const ids = command.bindings.map(({ id }) => id);
  const { program, written, alias, inPlace } = command;
  return { reads: ids.slice(0, -written), writes: ids.slice(-written), group: program.key, alias, inPlace };
}

/** Compiled commands: all that they need was made, and they may be submitted repeatedly. */
export interface CompiledSegment {
  /** True if the one-time work has succeeded. */
  settled: boolean;
  /** The kernel instance of the first dispatch that the device refuses. */
  refused(): Promise<number | undefined>;
  /** Frees its own memory; the tensors' has other owners. */
  destroy(): void;
}

/** Called with the number of programs that have been compiled since. */
export type CompileProgress = (done: number, total: number) => void;

/** A program that was waited for, and the time from its request until it was ready; others were compiled meanwhile. */
export type CompiledShader = readonly [label: string, readyAfterMs: number];

/** Waits for all programs of the commands together; returns those that were not ready. */
export async function compilePrograms(
  commands: readonly Command[],
  progress?: CompileProgress,
): Promise<CompiledShader[]> {
  const waiting = new Set<Program>();
  for (const command of commands)
    if (command.kind === 'dispatch' && !command.program.ready) waiting.add(command.program);
  let done = 0;
  await Promise.all(
    [...waiting].map(async (program) => {
      await program.compile();
      progress?.(++done, waiting.size);
    }),
  );
  return [...waiting].map(({ label, compileMs }) => [label, compileMs ?? 0]);
}
