import { kernels } from './kernels';

export { kernels };
export const sources = kernels.map(() => 'kernels');
