/** The package's version, from web/package.json, inserted by build.mjs. */
declare const PY_ORT_VERSION: string;

export const VERSION: string = PY_ORT_VERSION;
