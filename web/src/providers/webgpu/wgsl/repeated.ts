/** A text for each of so many numbers from 0 on. */
export function repeated(count: number, text: (i: number) => string, separator = '\n  '): string {
  return Array.from({ length: count }, (_, i) => text(i)).join(separator);
}
