// Counts of the GPU side's work so far. Replaying a recording adds dispatches, submits, uploads and downloads only.

export interface Counters {
  pipelines: number;
  buffers: number;
  bind_groups: number;
  dispatches: number;
  submits: number;
  uploads: number;
  downloads: number;
  suspensions: number;
  /** Walks of the plan by the core. A run without one only encoded a recording. */
  walks: number;
}

export function newCounters(): Counters {
  return {
    pipelines: 0,
    buffers: 0,
    bind_groups: 0,
    dispatches: 0,
    submits: 0,
    uploads: 0,
    downloads: 0,
    suspensions: 0,
    walks: 0,
  };
}

/** The sum of several counters. */
export function countersOf(all: readonly Counters[]): Counters {
  const sum = newCounters();
  for (const counters of all) for (const name of Object.keys(sum) as (keyof Counters)[]) sum[name] += counters[name];
  return sum;
}

/** The difference between two moments. */
export function countersSince(before: Counters, now: Counters): Counters {
  const difference = newCounters();
  for (const name of Object.keys(now) as (keyof Counters)[]) difference[name] = now[name] - before[name];
  return difference;
}
