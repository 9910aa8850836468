// The cases of test_javascript_api.py: py_ort.mjs in a page without Python.
import { ending } from './javascript_checks.mjs';
import { cases as errors } from './javascript_errors.mjs';
import { cases as gpu } from './javascript_gpu.mjs';
import { cases as sessions } from './javascript_sessions.mjs';
import { cases as damaged } from './javascript_damaged_files.mjs';
import { env } from './py_ort.mjs';

export { env };

/** Each is run twice: with sessions in a worker if possible, and in the page. */
export const cases = ending({ ...errors, ...gpu, ...sessions, ...damaged });
