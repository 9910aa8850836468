// Products and convolutions of bytes.
import type { Kernel } from '../../../../../contract/kernel';
import { convInteger, qLinearConv } from './conv';
import { matMulInteger, qLinearMatMul } from './matmul';

export default [matMulInteger, qLinearMatMul, convInteger as Kernel, qLinearConv as Kernel];
