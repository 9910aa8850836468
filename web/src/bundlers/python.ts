// `py-ort`, as it is found on the machine of a build.
import { spawn } from 'node:child_process';

/** The version of this package, which must be that of the compiler: plans of another one do not run. */
declare const PY_ORT_VERSION: string;

interface Ended {
  readonly status: number | null;
  readonly output: string;
}

/** Ways to run the command, in order: installed, or fetched by who is asked for it. */
const WAYS = [
  ['py-ort'],
  ['uvx', '--from', `py_ort==${PY_ORT_VERSION}`, 'py-ort'],
  ['pipx', 'run', '--spec', `py_ort==${PY_ORT_VERSION}`, 'py-ort'],
];

/** Runs a program. @returns undefined where there is none of that name. */
function run([program, ...before]: readonly string[], args: readonly string[]): Promise<Ended | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...before, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => pieces.push(piece));
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(undefined);
      else reject(error);
    });
    child.on('close', (status) => resolve({ status, output: Buffer.concat(pieces).toString() }));
  });
}

let found: Promise<readonly string[]> | undefined;

async function find(say: (text: string) => void): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const way of WAYS) {
    const ended = await run(way, ['--version']);
    if (!ended) continue;
    if (ended.status !== 0) {
      failures.push(failure([...way, '--version'], ended));
      continue;
    }
    if (way !== WAYS[0]) say(`py-ort is not installed here: models are compiled by \`${way.join(' ')}\``);
    return way;
  }
  const why = failures.length > 0 ? failures.join('\n') : 'there is no py-ort, and neither uv nor pipx to fetch it';
  const advice = `\`pip install py_ort==${PY_ORT_VERSION}\` installs it (Python 3.11 or later)`;
  throw new Error(`models cannot be compiled: ${why}${failures.length > 0 ? '\n' : '. '}${advice}`);
}

/** A command that failed, with what it printed. */
function failure(command: readonly string[], { status, output }: Ended): string {
  return `\`${command.join(' ')}\` failed:\n${output.trim() || `it ended with status ${status}`}`;
}

/** The command; after a failure it is looked for again. */
function foundCommand(say: (text: string) => void): Promise<readonly string[]> {
  found ??= find(say).catch((error: unknown) => {
    found = undefined;
    throw error;
  });
  return found;
}

/**
 * Runs `py-ort`.
 *
 * @param args its arguments.
 * @param command the command to run, where it is not to be looked for.
 * @param say told how the command is run, if it is not installed.
 * @returns its output.
 */
export async function pyOrt(
  args: readonly string[],
  command: readonly string[] | undefined,
  say: (text: string) => void,
): Promise<string> {
  const way = command ?? (await foundCommand(say));
  const ended = await run(way, args);
  if (!ended) throw new Error(`there is no command ${way[0]}`);
  if (ended.status !== 0) throw new Error(failure([...way, ...args], ended));
  return ended.output;
}
