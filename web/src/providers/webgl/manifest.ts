// What the build tells Python of the kernels.
import { registered } from './registry';

export const kernels = registered.map(([kernel]) => kernel);
export const sources = registered.map(([, source]) => source);
