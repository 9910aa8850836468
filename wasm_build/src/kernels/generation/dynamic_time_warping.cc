// com.microsoft's DynamicTimeWarping: the cheapest path through a matrix of costs, from its first element to its last.
#include <algorithm>
#include <limits>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

class DynamicTimeWarping {
 public:
  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PY_ORT_ENSURE(x.rank() == 2 || (x.rank() == 3 && x.dims[0] == 1),
                  "DynamicTimeWarping takes costs [rows, columns], not the shape ", x.dims);
    const int64_t rows = x.dim(-2), columns = x.dim(-1), stride = columns + 1;
    // For each element, with a border before it: the cost of the path to it, and the previous step.
    std::vector<float> cost(static_cast<size_t>((rows + 1) * stride), std::numeric_limits<float>::infinity());
    std::vector<int8_t> came(cost.size(), kLeft);
    cost[0] = 0;
    for (int64_t j = 1; j <= columns; ++j)
      for (int64_t i = 1; i <= rows; ++i) {
        const auto at = static_cast<size_t>(i * stride + j), up = at - static_cast<size_t>(stride);
        const float both = cost[up - 1], above = cost[up], left = cost[at - 1];
        // Ties choose the left.
        const int8_t from = both < above && both < left ? kBoth : above < both && above < left ? kUp : kLeft;
        came[at] = from;
        cost[at] = x.data<float>()[(i - 1) * columns + j - 1] + (from == kBoth ? both : from == kUp ? above : left);
      }
    for (int64_t j = 0; j <= columns; ++j) came[static_cast<size_t>(j)] = kLeft;
    for (int64_t i = 0; i <= rows; ++i) came[static_cast<size_t>(i * stride)] = kUp;
    std::vector<int32_t> path;  // from the end: row, column
    for (int64_t i = rows, j = columns; i > 0 || j > 0;) {
      path.push_back(static_cast<int32_t>(i - 1)), path.push_back(static_cast<int32_t>(j - 1));
      const int8_t from = came[static_cast<size_t>(i * stride + j)];
      if (from != kLeft) --i;
      if (from != kUp) --j;
    }
    const auto length = static_cast<int64_t>(path.size() / 2);
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::int32, {2, length}, y));
    for (int64_t k = 0; k < length; ++k)
      for (int64_t axis = 0; axis < 2; ++axis)
        y->mutable_data<int32_t>()[axis * length + k] = path[static_cast<size_t>((length - 1 - k) * 2 + axis)];
    return {};
  }

 private:
  static constexpr int8_t kBoth = 0, kUp = 1, kLeft = 2;
};

PY_ORT_KERNEL(kMicrosoftDomain, "DynamicTimeWarping", "float32", DynamicTimeWarping);

}  // namespace
}  // namespace py_ort
