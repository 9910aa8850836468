// Operators whose result's shape depends on data, each with its counting node (see count.ts).
import { nonMaxSuppressionKernels } from './non_max_suppression';
import { nonZeroKernels } from './non_zero';
import { uniqueKernels } from './unique';

export default [...nonZeroKernels, ...uniqueKernels, ...nonMaxSuppressionKernels];
