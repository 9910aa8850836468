// The list of kernels that the build writes for Python.
import { registered } from './registry';

export const kernels = registered.map(([kernel]) => kernel);
export const sources = registered.map(([, source]) => source);
