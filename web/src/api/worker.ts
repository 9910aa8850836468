// The worker in which sessions of the API run: see WorkerEngine, which sends the requests.
import { ErrorCode } from '../schema';
import { codeOf, messageOf, RuntimeError } from '../errors';
import { isContainer, isOnGpu, type Value } from '../wire/values';
import type { OnLogits } from '../generate/generate_options';
import type { Answer, Question } from './worker_messages';
import type { TensorKeeper } from '../device/keeper';
import { LocalEngine, sharedRuntime } from './local_engine';
import type { CompiledCore } from '../core/files';

const engines = new Map<number, LocalEngine>();
/** Of released sessions: their outputs left on the GPU stay until the page releases them. */
const keepers = new Map<number, TensorKeeper>();
const underWay = new Map<number, AbortController>();
/** Of generations that wait for logits. */
const choosing = new Map<number, (logits: ArrayLike<number>) => void>();

let compiledInPage: (core: CompiledCore | undefined) => void;
const compiled = new Promise<CompiledCore | undefined>((resolve) => {
  compiledInPage = resolve;
});

const say = (answer: Answer, transfer: Transferable[] = []) => self.postMessage(answer, { transfer });

async function answer(question: Question, signal: AbortSignal): Promise<{ value: unknown; transfer?: Transferable[] }> {
  const { id } = question;
  switch (question.ask) {
    case 'compiled':
      compiledInPage(question.core);
      return { value: undefined };
    case 'create': {
      const runtime = sharedRuntime(question.request.runtime, compiled);
      runtime.log = (severity, category, text) => say({ tell: 'log', id, severity, category, text });
      const engine = await LocalEngine.create(question.request, runtime, {
        log: runtime.log,
        signal,
        onProgress: (stage, done, total) => say({ tell: 'progress', id, stage, done, total }),
      });
      engines.set(id, engine);
      return { value: { description: engine.description, location: engine.keeper?.location } };
    }
    case 'run': {
      const result = await engineOf(question.session).run(question.feeds, { ...question.options, signal });
      return { value: result, transfer: Object.values(result.outputs).flatMap(buffersOf) };
    }
    case 'generate': {
      const { prompts, options, filters } = question;
      const tell = (tokens: readonly number[]) => say({ tell: 'tokens', id, tokens });
      const change: OnLogits = (...given) =>
        new Promise((resolve) => {
          choosing.set(id, resolve);
          say({ tell: 'logits', id, given }, [given[0].buffer as ArrayBuffer]);
        });
      const hook = filters ? change : undefined;
      return { value: await engineOf(question.session).generate(prompts, options, tell, signal, hook) };
    }
    case 'choose':
      choosing.get(question.of)?.(question.logits);
      return { value: undefined };
    case 'download': {
      const { gpuId, dtype, dims } = question;
      const bytes = await keeperOf(question.session)!.download(gpuId, dtype, dims);
      return { value: bytes, transfer: [bytes.buffer] };
    }
    case 'free':
      keeperOf(question.session)?.free(question.gpuId);
      return { value: undefined };
    case 'release': {
      const engine = engines.get(question.session);
      if (engine?.keeper) keepers.set(question.session, engine.keeper);
      engines.delete(question.session);
      await engine?.release();
      return { value: undefined };
    }
    case 'abort':
      underWay.get(question.of)?.abort();
      return { value: undefined };
  }
}

function engineOf(session: number): LocalEngine {
  const engine = engines.get(session);
  if (!engine) throw new RuntimeError(ErrorCode.no_such_session, 'this session was released');
  return engine;
}

function keeperOf(session: number): TensorKeeper | undefined {
  return engines.get(session)?.keeper ?? keepers.get(session);
}

function buffersOf(value: Value): ArrayBuffer[] {
  if (isContainer(value)) return value.items.flatMap(buffersOf);
  return isOnGpu(value) ? [] : [value.data.buffer as ArrayBuffer];
}

self.onmessage = async ({ data: question }: MessageEvent<Question>) => {
  const abort = new AbortController();
  underWay.set(question.id, abort);
  try {
    const { value, transfer } = await answer(question, abort.signal);
    say({ tell: 'value', id: question.id, value }, [...new Set(transfer)]);
  } catch (error) {
    const place = error instanceof RuntimeError ? error.place : {};
    const stack = (error instanceof Error && error.stack) || '';
    say({ tell: 'error', id: question.id, code: codeOf(error), message: messageOf(error), stack, place });
  } finally {
    underWay.delete(question.id);
    choosing.delete(question.id);
  }
};
// Modules cannot be sent to a worker of another agent cluster.
self.onmessageerror = () => compiledInPage(undefined);
