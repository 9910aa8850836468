// What import.meta.url is to modules, for the build that a script tag loads.
export const scriptUrl: string = (document.currentScript as HTMLScriptElement | null)?.src || location.href;
