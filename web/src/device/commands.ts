// What kernels ask of a device, and what becomes of it there.
import type { Tiling } from '../contract/kernel';
import type { Access, InPlace } from './segment_plan';

/** What a dispatch runs: a pipeline, say. */
export interface Program {
  /** Equal keys: equal programs. */
  readonly key: string;
  /** For logs and profiles. */
  readonly label: string;
  /** Compiles it, if that is not under way. Rejects with a RuntimeError of code shader. */
  compile(): Promise<unknown>;
  /** Set once it is compiled. */
  readonly ready?: unknown;
  /** From the request to the program; others are compiled meanwhile. */
  readonly compileMs?: number;
}

/** What a kernel asked the device to do. Ids are virtual until it is built. */
export type Command<P extends Program = Program> = DispatchCommand<P> | CopyCommand;

export interface DispatchCommand<P extends Program = Program> {
  readonly kind: 'dispatch';
  readonly program: P;
  /** In binding order: inputs, then outputs. */
  readonly bindings: readonly Region[];
  /** How many of the bindings, at the end, are written. */
  readonly written: number;
  readonly uniforms: Uint8Array | undefined;
  readonly workgroups: readonly [number, number, number];
  /** The kernel instance that asked for it, for profiles. */
  instance?: number;
  /** For profiles, too. */
  readonly tiling?: Tiling;
  /** What it reads and what it writes may lie in one buffer. */
  readonly alias?: boolean;
  /** Which of the bindings that it reads may lie where one of those is that it writes. */
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

/** What a memory plan must know of a command. */
export function accessOf(command: Command): Access {
  if (command.kind === 'copy') return { reads: [command.source.id], writes: [command.target.id] };
  const ids = command.bindings.map(({ id }) => id);
  const { program, written, alias, inPlace } = command;
  return { reads: ids.slice(0, -written), writes: ids.slice(-written), group: program.key, alias, inPlace };
}

/** Commands made ready: what they need was made, and they may be submitted again and again. */
export interface CompiledSegment {
  /** Whether what is to be done once was done, and done well. */
  settled: boolean;
  /** The kernel instance whose dispatch is the first that the device does not take. */
  refused(): Promise<number | undefined>;
  /** Frees its own memory; the tensors' belongs to others. */
  destroy(): void;
}

/** Told how many of the programs that were still being compiled are done. */
export type CompileProgress = (done: number, total: number) => void;

/** A program that was waited for, and the time from its request until it was ready; others were compiled meanwhile. */
export type CompiledShader = readonly [label: string, readyAfterMs: number];

/** Waits for all programs of the commands together; gives those that were not ready. */
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
