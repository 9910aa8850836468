import type { Tensor } from '../../../../contract/kernel';
import type { Program } from '../../wgsl/program';
import type { Columns } from '../shared/columns';
import type { Geometry } from '../../../../contract/window';

/** The operands of any convolution: x and y are [images, height, width, channels] by default; the kind describes w. */
export interface ConvolutionOperands {
  readonly x: Tensor;
  readonly w: Tensor;
  readonly y: Tensor;
  readonly bias?: Tensor;
  readonly residual?: Tensor;
  readonly epilogue?: Program;
  readonly geometry: Geometry;
}

/** A convolution with channels last, on some of the channels of x, residual and y. */
export interface ChannelsLast extends ConvolutionOperands {
  readonly columns: { readonly x: Columns; readonly y: Columns; readonly residual?: Columns };
}
