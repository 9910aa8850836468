// Reductions over any set of axes, in the lanes.
#pragma once

#include "kernels/shared/lanes.h"

namespace py_ort {

enum class Step : uint8_t { sum, sum_abs, sum_squares, max, min, product };

// The axes to reduce, and the dims that stay (reduced ones as 1 if `keep`).
struct ReducedAxes {
  std::vector<bool> reduced;  // per axis
  Dims kept_dims, dims;       // with the reduced axes as 1; as in the output
  int64_t count = 1;          // elements that become one
};
ReducedAxes reduced_axes(const Dims& dims, const std::vector<int64_t>& axes, bool keep);

// The loops over the elements, the innermost last: axes of size 1 are dropped, and neighbors of the same kind are
// joined. `step` is that of the output, 0 for a reduced axis.
struct ReduceLoop {
  int64_t size, step;
  bool reduced;
};
std::vector<ReduceLoop> reduce_loops(const Dims& dims, const ReducedAxes& axes);

// `in` and `out` have a lane's dtype. The identity (the result for an empty set) is that of `dtype`, which may be
// narrower.
void reduce(Step step, const Tensor& in, const ReducedAxes& axes, DType dtype, Tensor& out);

// A reduction of floats that arrive in order, a few at a time.
class ReduceStream {
 public:
  ReduceStream(Step step, const Dims& dims, const ReducedAxes& axes, float* totals, int64_t outputs);
  void take(const float* x, int64_t count);

 private:
  Step step_;
  std::vector<ReduceLoop> loops_;
  Dims index_;          // of the outer loops
  int64_t within_ = 0;  // of the innermost loop
  float* totals_;
  float identity_;
};

enum class Finish : uint8_t { none, mean, sqrt, log, log_of_exps };
struct Reduction {
  std::string_view op_type;
  Step step;
  Finish finish;
};
// Null for other operators.
const Reduction* find_reduction(std::string_view op_type);
// The final step on totals of `count` elements each; not for log_of_exps.
template <class T>
void finish_totals(Finish finish, T* y, int64_t outputs, int64_t count);
extern template void finish_totals<float>(Finish, float*, int64_t, int64_t);

}  // namespace py_ort
