// Clip.
#include <algorithm>
#include <limits>

#include "kernels/shared/dtypes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"
#include "kernels/shared/simd_math.h"

namespace py_ort {
namespace {

template <class T>
void clamp(const T* x, T* y, size_t count, T least, T most) {
  size_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const v128_t low = simd::splat(least), high = simd::splat(most);
    for (; i + 4 <= count; i += 4) simd::store(y + i, simd::at_most(simd::at_least(simd::load(x + i), low), high));
  }
  for (; i < count; ++i) {
    const T raised = x[i] < least ? least : x[i];
    y[i] = raised > most ? most : raised;
  }
}

// onnxruntime's bound if none is given: the largest finite number of the type, to which infinities are clipped.
template <class T>
T largest(DType dtype) {
  if (dtype == DType::float16) return static_cast<T>(65504.0f);
  if (dtype == DType::bfloat16) return static_cast<T>(0x1.fep127f);
  return std::numeric_limits<T>::max();
}

template <class T>
T lowest(DType dtype) {
  return std::is_floating_point_v<T> ? -largest<T>(dtype) : std::numeric_limits<T>::lowest();
}

struct Clip {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor low, high;
    PY_ORT_TRY(bound(context.input(1), low));
    PY_ORT_TRY(bound(context.input(2), high));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, in.dims, out, {0}));
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      const T least = low.storage ? *low.data<T>() : lowest<T>(in.dtype);
      const T most = high.storage ? *high.data<T>() : largest<T>(in.dtype);
      const int64_t count = in.count();
      if (is_native(in.dtype))
        return clamp(in.data<T>(), out->mutable_data<T>(), static_cast<size_t>(count), least, most);
      alignas(16) T wide[kChunk];
      for (int64_t at = 0; at < count; at += kChunk) {
        const auto n = static_cast<size_t>(std::min<int64_t>(kChunk, count - at));
        clamp(static_cast<const T*>(widen(in.dtype, in.storage->data(), at, n, wide)), wide, n, least, most);
        narrow(in.dtype, wide, out->storage->data(), at, n);
      }
    });
    return {};
  }

 private:
  static Status bound(const Tensor* given, Tensor& out) {
    if (!given) return {};
    PY_ORT_ENSURE(given->count() == 1, "Clip's bounds must be scalars, got shape ", given->dims);
    return widened(*given, out);
  }
};

PY_ORT_KERNEL("", "Clip", "=" PY_ORT_NUMBERS, Clip);

}  // namespace
}  // namespace py_ort
