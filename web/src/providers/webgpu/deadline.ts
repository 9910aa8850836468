// The browser's GPU side may never answer: a driver that hangs blocks all who wait for it. So each step gets the
// remaining time, and an error names the step.
import { ErrorCode } from '../../schema';
import { RuntimeError } from '../../errors';

const TIMEOUT_MS = 60_000;

/** Steps without an answer although their time is over, with their start times. */
const unanswered = new Map<string, number>();

export class Deadline {
  private readonly end: number;

  constructor(private readonly ms = TIMEOUT_MS) {
    this.end = performance.now() + ms;
  }

  /**
   * Waits for a step's answer, within the remaining time. A step that still hangs since an earlier try is not begun.
   */
  async wait<T>(step: string, begin: () => Promise<T>): Promise<T> {
    const since = unanswered.get(step);
    if (since !== undefined) throw late(step, performance.now() - since);
    const began = performance.now();
    const answer = begin();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeUp = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => {
          unanswered.set(step, began);
          const answered = () => unanswered.delete(step);
          answer.then(answered, answered);
          reject(late(step, this.ms));
        },
        Math.max(this.end - began, 0),
      );
    });
    try {
      return await Promise.race([answer, timeUp]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function late(step: string, ms: number): RuntimeError {
  const seconds = Number((ms / 1000).toPrecision(2));
  const message = `the browser did not answer ${step} within ${seconds} s: its GPU process or the driver hangs`;
  return new RuntimeError(ErrorCode.no_adapter, message);
}
