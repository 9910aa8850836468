/** Of the package: web/package.json's, put in by build.mjs. */
declare const PY_ORT_VERSION: string;

export const VERSION: string = PY_ORT_VERSION;
