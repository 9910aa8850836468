#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

struct Slice {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> starts, ends, axes, steps;
    PY_ORT_TRY(read_integers(context.input(1), starts));
    PY_ORT_TRY(read_integers(context.input(2), ends));
    if (const Tensor* given = context.input(3)) {
      PY_ORT_TRY(read_integers(*given, axes));
    } else {
      axes.resize(starts.size());
      std::iota(axes.begin(), axes.end(), 0);
    }
    PY_ORT_TRY(distinct_axes(axes, in.rank()));
    steps.assign(starts.size(), 1);
    if (const Tensor* given = context.input(4)) PY_ORT_TRY(read_integers(*given, steps));
    PY_ORT_ENSURE(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
                  "Slice: starts ", starts, ", ends ", ends, ", axes ", axes, " and steps ", steps,
                  " differ in length");
    Dims dims = in.dims;
    StridedView view{0, strides_of(in.dims)};
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i], step = steps[i], size = in.dim(axis);
      PY_ORT_ENSURE(step != 0, "Slice: the step of axis ", axis, " is 0");
      // A backward slice begins at the last element at the latest, and may end before the first.
      const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
      const int64_t start = std::clamp<int64_t>(starts[i] < 0 ? std::max(starts[i], -size) + size : starts[i],
                                                std::min<int64_t>(0, high), high);
      const int64_t end = std::clamp(ends[i] < 0 ? std::max(ends[i], -size - 1) + size : ends[i], low, high);
      const int64_t distance = step > 0 ? end - start : start - end;
      const int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
      dims[axis] = distance > 0 ? (distance - 1) / stride + 1 : 0;
      view.offset += start * view.strides[axis];
      view.strides[axis] *= dims[axis] > 1 ? step : 1;
    }
    if (dims == in.dims && view.offset == 0 && view.strides == strides_of(in.dims)) {
      context.output(0, in);
      return {};
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, dims, out));
    strided_copy(in, std::move(view), *out, {0, strides_of(dims)}, dims);
    return {};
  }
};

PY_ORT_KERNEL("", "Slice", "*;int32,int64", OnBytes<Slice>);

}  // namespace
}  // namespace py_ort
