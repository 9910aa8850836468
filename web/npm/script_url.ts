// The URL of a script, for the build that a script tag or `importScripts` loads; modules have import.meta.url instead.
const tag = globalThis.document?.currentScript as HTMLScriptElement | null | undefined;
/** Of the frame of this script: a worker does not say which script is running. */
const [, frame] = /(\w[\w-]*:\/\/[^\s()]+?):\d+:\d+/.exec(new Error().stack ?? '') ?? [];
export const scriptUrl: string = tag?.src || frame || location.href;
