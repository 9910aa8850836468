// Reductions over any set of axes, in the lanes.
#pragma once

#include "lanes.h"

namespace py_ort {

enum class Step : uint8_t { sum, sum_abs, sum_squares, max, min, product };

// Which axes go, and the dims that stay (as 1 each when `keep`).
struct ReducedAxes {
  std::vector<bool> reduced;  // per axis
  Dims kept_dims, dims;       // with the reduced axes as 1; as the output has them
  int64_t count = 1;          // elements that become one
};
ReducedAxes reduced_axes(const Dims& dims, const std::vector<int64_t>& axes, bool keep);

// `in` and `out` are of one lane's dtype. The identity (what an empty set gives) is that of `dtype`, which may be narrower.
void reduce(Step step, const Tensor& in, const ReducedAxes& axes, DType dtype, Tensor& out);

}  // namespace py_ort
