#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"
#include "kernels/sorting/order.h"

namespace py_ort {
namespace {

class TopK {
 public:
  explicit TopK(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", -1)), largest_(info.attributes.integer("largest", 1) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = 0, k = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    PY_ORT_TRY(read_integer(*context.input(1), "TopK's K", k));
    const int64_t size = in.dim(axis), inner = count_between(in.dims, axis + 1, in.rank()),
                  outer = count_between(in.dims, 0, axis);
    PY_ORT_ENSURE(k >= 0 && k <= size, "TopK: K is ", k, ", but axis ", axis, " of shape ", in.dims, " has ", size,
                  " elements");
    Dims dims = in.dims;
    dims[axis] = k;
    Tensor wide, best, result;
    PY_ORT_TRY(widened(in, wide));
    PY_ORT_TRY(Tensor::make(wide.dtype, dims, best));
    Tensor* indices = nullptr;
    PY_ORT_TRY(context.output(1, DType::int64, dims, indices));
    std::vector<int64_t> order(static_cast<size_t>(size));
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const T* x = wide.data<T>() + o * size * inner + i;
          std::iota(order.begin(), order.end(), 0);
          // Among equals the first one comes first.
          std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
            const T left = x[a * inner], right = x[b * inner];
            if (comes_before(left, right)) return !largest_;
            if (comes_before(right, left)) return largest_;
            return a < b;
          });
          for (int64_t j = 0; j < k; ++j) {
            const int64_t at = (o * k + j) * inner + i;
            best.mutable_data<T>()[at] = x[order[j] * inner];
            indices->mutable_data<int64_t>()[at] = order[j];
          }
        }
    });
    PY_ORT_TRY(cast(best, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  int64_t axis_;
  bool largest_;
};

PY_ORT_KERNEL("", "TopK", PY_ORT_NUMBERS ";int64", TopK);

}  // namespace
}  // namespace py_ort
