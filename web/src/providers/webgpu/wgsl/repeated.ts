/** A text for each number from 0 to `count`. */
export function repeated(count: number, text: (i: number) => string, separator = '\n  '): string {
  return Array.from({ length: count }, (_, i) => text(i)).join(separator);
}
