// An axis of times.

/** Round times between two, in µs: a few, however far one zooms; at least two where the range is not empty. */
export function ticks(from: number, to: number, most: number): number[] {
  const wanted = (to - from) / Math.max(most, 2);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted)!;
  const found = [];
  for (let n = Math.ceil(from / step); n * step <= to; n++) found.push(n * step);
  return found;
}

/** A time in µs as text, as exact as `step` needs. */
export function timeText(us: number, step = 0): string {
  const [unit, size] =
    Math.abs(us) >= 1e6 ? ['s', 1e6] : Math.abs(us) >= 1e3 ? ['ms', 1e3] : (['µs', 1] as [string, number]);
  const digits = step > 0 ? Math.max(0, Math.min(6, -Math.floor(Math.log10(step / size) + 1e-9))) : size === 1 ? 1 : 3;
  return `${(us / size).toFixed(digits)} ${unit}`;
}
