// Decides when to run a convolution by Winograd's F(2x2, 3x3), and makes its weights.
#pragma once

#include "kernels/shared/spatial.h"

namespace py_ort {

// True if it is faster: 3x3 taps, stride 1, enough channels on both sides, and enough tiles to share the transformed
// weights.
bool winograd_pays(const SpatialPlan& plan, int64_t in_channels, int64_t out_channels);
// G g G^T of weights in panels ([ceil(n/8), 9 k, 8], rows in the order tap, channel): [16, ceil(n/8), k, 8].
Status winograd_weights(const float* panels, int64_t k, int64_t n, Tensor& out);

}  // namespace py_ort
