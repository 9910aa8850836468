// Copies between tensors whose axes step through memory differently: transposes, slices, tiles and all that is made of them.
#pragma once

#include "elements.h"

namespace py_ort {

// Steps, in elements, of a tensor of these dims in C order.
Dims strides_of(const Dims& dims);

struct StridedView {
  int64_t offset = 0;
  Dims strides;  // may be negative, or 0 to repeat
};
// to[i, j, …] = from[i, j, …] for all indices below `dims`.
void strided_copy(const Tensor& from, StridedView from_view, Tensor& to, StridedView to_view, Dims dims);

// to[i, j, …] = from[sum of maps[axis][index]], in C order; a negative entry anywhere means `fill` (element 0 of it, or zero when null).
// Entries are offsets in elements: already multiplied by the input's strides.
void mapped_copy(const Tensor& from, const std::vector<std::vector<int64_t>>& maps, const Tensor* fill, Tensor& to);

}  // namespace py_ort
