#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"
#include "kernels/elementwise/pow.h"

namespace py_ort {
namespace {

// A negative power of an integer is a fraction, and becomes 0, unless the base is 1 or -1; a power of 0 is native's
// conversion of infinity.
template <class T>
T power(T base, int64_t exponent) {
  if (exponent < 0 && base == 0) return std::numeric_limits<T>::min();
  if (exponent < 0) return base == 1 ? T{1} : base == static_cast<T>(-1) ? static_cast<T>(exponent % 2 ? -1 : 1) : T{0};
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e; e >>= 1, square *= square)
    if (e & 1) result *= square;
  return static_cast<T>(result);
}

// The operands have the base's lane; an integer base with a float exponent is computed in f64.
struct PowOp {
  template <class T> T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return std::pow(x, y);
    else return power(x, static_cast<int64_t>(y));
  }
};
constexpr BinaryLoops kPow = lane_loops<PowOp>();

struct Pow {
  Status operator()(KernelContext& context) const {
    const Tensor& base = *context.input(0);
    const DType dtype = base.dtype, exponent_dtype = context.input(1)->dtype;
    if (dtype == DType::float32 && context.input(1)->count() == 1 && context.input(1)->rank() <= base.rank()) {
      Tensor exponent;
      PY_ORT_TRY(cast(*context.input(1), DType::float32, exponent));
      Tensor* out = nullptr;
      PY_ORT_TRY(context.output(0, dtype, base.dims, out));
      powers(base.data<float>(), *exponent.data<float>(), out->mutable_data<float>(), base.count());
      return {};
    }
    const Lane exponent_lane = lane_of(exponent_dtype);
    const bool float_exponent = exponent_lane == Lane::f32 || exponent_lane == Lane::f64,
               float_base = lane_of(dtype) == Lane::f32 || lane_of(dtype) == Lane::f64;
    const DType lane = !float_base && float_exponent ? DType::float64 : lane_dtype(lane_of(dtype));
    Tensor x, y, z, result;
    PY_ORT_TRY(cast(base, lane, x));
    PY_ORT_TRY(cast(*context.input(1), lane, y));
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&x.dims, &y.dims}, broadcast));
    PY_ORT_TRY(Tensor::make(lane, broadcast.dims, z));
    apply_binary(kPow, broadcast, x, y, z);
    PY_ORT_TRY(cast(z, dtype, result));
    context.output(0, std::move(result));
    return {};
  }
};

PY_ORT_KERNEL("", "Pow", PY_ORT_FLOATS ",int32,int64;" PY_ORT_NUMBERS, Pow);

}  // namespace

void powers(const float* x, float exponent, float* y, int64_t count) {
  const auto map = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
  };
  // Exponents frequent in models need no pow.
  if (exponent == 2) return map([](float v) { return v * v; });
  if (exponent == 3) return map([](float v) { return v * v * v; });
  if (exponent == 1) return map([](float v) { return v; });
  if (exponent == -1) return map([](float v) { return 1 / v; });
  // pow(-0, .5) is 0 and pow(-inf, .5) is inf, but sqrt returns -0 and NaN.
  if (exponent == 0.5f) return map([](float v) { return v == -INFINITY ? INFINITY : std::sqrt(v) + 0.0f; });
  map([&](float v) { return std::pow(v, exponent); });
}

}  // namespace py_ort
