// Checks of the fields in the header of a .pyort file, JSON from an untrusted source.

/** Returns true if data are of a type. */
export type Is<T> = (data: unknown) => data is T;

export const isText: Is<string> = (data) => typeof data === 'string';
export const isInteger: Is<number> = (data): data is number => Number.isInteger(data);
/** A size or an offset that adds up without rounding. */
export const isCount: Is<number> = (data): data is number => Number.isSafeInteger(data) && (data as number) >= 0;
export const isSize: Is<number | string | null> = (data): data is number | string | null =>
  data === null || isText(data) || isInteger(data);

export const listOf =
  <T>(is: Is<T>, least = 0, most = Infinity): Is<readonly T[]> =>
  (data): data is readonly T[] =>
    Array.isArray(data) && data.length >= least && data.length <= most && data.every(is);

export const mapOf =
  <T>(is: Is<T>): Is<{ readonly [key: string]: T }> =>
  (data): data is { readonly [key: string]: T } =>
    isRecord(data) && Object.values(data).every(is);

export const orNull =
  <T>(is: Is<T>): Is<T | null> =>
  (data): data is T | null =>
    data === null || is(data);

/** An object with these fields, each of its type. */
export const recordOf =
  <T>(fields: { readonly [key in keyof T]-?: (data: unknown) => boolean }): Is<T> =>
  (data): data is T =>
    isRecord(data) &&
    (Object.keys(fields) as (keyof T & string)[]).every((key) => Object.hasOwn(data, key) && fields[key](data[key]));

function isRecord(data: unknown): data is { readonly [key: string]: unknown } {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}
