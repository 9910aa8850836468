// Range.
#include <algorithm>
#include <cmath>

#include "py_ort/kernel.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// More elements than a heap of 4 GiB has room for; larger numbers do not fit int64.
constexpr double kMost = 1e12;

// The difference of two integers may exceed their type.
template <class T>
uint64_t steps(T from, T to, T step) {
  const auto span = step > 0 ? uint64_t(to) - uint64_t(from) : uint64_t(from) - uint64_t(to);
  return (span - 1) / (step > 0 ? uint64_t(step) : uint64_t{0} - uint64_t(step)) + 1;
}

struct Range {
  Status operator()(KernelContext& context) const {
    const DType dtype = context.input(0)->dtype;
    Tensor start, limit, delta;
    PY_ORT_TRY(widened(*context.input(0), start));
    PY_ORT_TRY(widened(*context.input(1), limit));
    PY_ORT_TRY(widened(*context.input(2), delta));
    PY_ORT_ENSURE(start.count() == 1 && limit.count() == 1 && delta.count() == 1, "Range needs scalars, got shapes ",
                  start.dims, ", ", limit.dims, " and ", delta.dims);
    Tensor wide, result;
    PY_ORT_TRY(visit_lane(lane_of(dtype), [&]<class T>() -> Status {
      const T from = *start.data<T>(), to = *limit.data<T>(), step = *delta.data<T>();
      PY_ORT_ENSURE(step != 0, "Range from ", from, " to ", to, ": the step is 0");
      double length = 0;
      if constexpr (std::is_floating_point_v<T>) length = std::ceil((static_cast<double>(to) - from) / step);
      else if (step > 0 ? to > from : from > to) length = static_cast<double>(steps(from, to, step));
      PY_ORT_ENSURE(std::isfinite(length), "Range from ", from, " to ", to, " by ", step, " has no end");
      if (length > kMost) return out_of_memory("Range from ", from, " to ", to, " by ", step, " has too many elements");
      const int64_t count = std::max<int64_t>(static_cast<int64_t>(length), 0);
      PY_ORT_TRY(Tensor::make(start.dtype, {count}, wide));
      T* out = wide.mutable_data<T>();
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(from + static_cast<T>(i) * step);
      return {};
    }));
    PY_ORT_TRY(cast(wide, dtype, result));
    context.output(0, std::move(result));
    return {};
  }
};

PY_ORT_KERNEL("", "Range", "=" PY_ORT_FLOATS ",int16,int32,int64", Range);

}  // namespace
}  // namespace py_ort
