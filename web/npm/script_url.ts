// The URL of a script, for the build that a script tag loads; modules have import.meta.url instead.
export const scriptUrl: string = (document.currentScript as HTMLScriptElement | null)?.src || location.href;
