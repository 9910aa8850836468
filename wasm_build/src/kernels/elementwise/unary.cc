// The elementwise operators of one input: floats by the table of functions, integers here.
#include "kernels/elementwise/unary.h"

#include <algorithm>

#include "kernels/shared/dtypes.h"
#include "kernels/shared/float_bits.h"
#include "kernels/shared/lanes.h"
#include "py_ort/gen/unary_operators_generated.h"

namespace py_ort {

UnaryParams unary_params(const UnaryFunction& function, const Attributes& attributes) {
  return {function.a_name ? attributes.number(function.a_name, function.a) : 0,
          function.b_name ? attributes.number(function.b_name, function.b) : 0};
}

void apply_unary(const UnaryFunction& function, UnaryParams params, const float* x, float* y, size_t count) {
  if (function.kind != Activation::none) {
    F32Map map;
    map.function = {function.kind, params.a, params.b};
    map.count = static_cast<int32_t>(count);
    map.x = x, map.y = y;
    run_microkernel(microkernels().f32_map, map);
  } else if (function.f32) {
    function.f32(x, y, count, params);
  } else {
    for (size_t i = 0; i < count; ++i) y[i] = static_cast<float>(function.f64(x[i], params.a, params.b));
  }
}

void apply_unary(const UnaryFunction& function, UnaryParams params, const Tensor& in, Tensor& out) {
  const auto count = static_cast<size_t>(in.count());
  if (in.dtype == DType::float64) {
    const double* x = in.data<double>();
    double* y = out.mutable_data<double>();
    for (size_t i = 0; i < count; ++i) y[i] = function.f64(x[i], params.a, params.b);
    return;
  }
  if (in.dtype == DType::float32)
    return apply_unary(function, params, in.data<float>(), out.mutable_data<float>(), count);
  alignas(16) float wide[kChunk];
  for (size_t at = 0; at < count; at += kChunk) {
    const size_t n = std::min(kChunk, count - at);
    const void* floats = widen(in.dtype, in.storage->data(), static_cast<int64_t>(at), n, wide);
    apply_unary(function, params, static_cast<const float*>(floats), wide, n);
    narrow(in.dtype, wide, out.storage->data(), static_cast<int64_t>(at), n);
  }
}

namespace {

bool is_float(DType dtype) { return lane_of(dtype) == Lane::f32 || lane_of(dtype) == Lane::f64; }

// Abs, Neg, Sign and Relu of integers; the other operators have no integer form (Shrink uses doubles).
Status integer_unary(char kind, const Tensor& in, Tensor& out) {
  Tensor wide, result;
  PY_ORT_TRY(widened(in, wide));
  PY_ORT_TRY(Tensor::make(wide.dtype, wide.dims, result));
  visit_lane(lane_of(in.dtype), [&]<class T>() {
    if constexpr (!std::is_floating_point_v<T>) {
      const T* x = wide.data<T>();
      T* __restrict y = result.mutable_data<T>();
      const int64_t count = wide.count();
      const auto negated = [](T v) {
        return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(v));
      };
      switch (kind) {
        case 'A':
          for (int64_t i = 0; i < count; ++i) y[i] = x[i] < T{0} ? negated(x[i]) : x[i];
          break;
        case 'N':
          for (int64_t i = 0; i < count; ++i) y[i] = negated(x[i]);
          break;
        case 'S':
          for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>((x[i] > T{0}) - (x[i] < T{0}));
          break;
        default:
          for (int64_t i = 0; i < count; ++i) y[i] = std::max(x[i], T{0});
          break;
      }
    }
  });
  return cast(result, in.dtype, out);
}

class Unary {
 public:
  static Status make(const KernelInfo& info, Unary& out) {
    const std::string approximate = info.attributes.text("approximate", "none");
    out.function_ = find_unary(approximate == "tanh" ? "GeluTanh" : info.op_type);
    out.params_ = unary_params(*out.function_, info.attributes);
    out.kind_ = info.op_type[0];
    return {};
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    if (is_float(in.dtype)) {
      Tensor* out = nullptr;
      PY_ORT_TRY(context.output(0, in.dtype, in.dims, out, {0}));
      apply_unary(*function_, params_, in, *out);
      return {};
    }
    Tensor result;
    if (function_->name == "Shrink") {
      Tensor wide;
      PY_ORT_TRY(cast(in, DType::float64, wide));
      apply_unary(*function_, params_, wide, wide);
      PY_ORT_TRY(cast(wide, in.dtype, result));
    } else {
      PY_ORT_TRY(integer_unary(kind_, in, result));
    }
    context.output(0, std::move(result));
    return {};
  }

 private:
  const UnaryFunction* function_ = nullptr;
  UnaryParams params_;
  char kind_ = 0;
};

// IsNaN, IsInf.
class Classify {
 public:
  explicit Classify(const KernelInfo& info)
      : nan_(info.op_type == "IsNaN"), positive_(info.attributes.integer("detect_positive", 1) != 0),
        negative_(info.attributes.integer("detect_negative", 1) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor wide;
    PY_ORT_TRY(widened(in, wide));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::bool_, in.dims, out));
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      auto* y = out->mutable_data<uint8_t>();
      for (const T x : wide.values<T>()) {
        const T infinity = static_cast<T>(std::numeric_limits<float>::infinity());
        *y++ = nan_ ? x != x : (positive_ && x == infinity) || (negative_ && x == -infinity);
      }
    });
    return {};
  }

 private:
  bool nan_, positive_, negative_;
};

#define PY_ORT_UNARY(domain, op_type, types) PY_ORT_KERNEL(domain, op_type, types, Unary);
PY_ORT_UNARY_OPERATORS(PY_ORT_UNARY)
#undef PY_ORT_UNARY
PY_ORT_KERNEL("", "IsNaN", PY_ORT_FLOATS "," PY_ORT_FLOAT8, Classify);
PY_ORT_KERNEL("", "IsInf", PY_ORT_FLOATS "," PY_ORT_FLOAT8, Classify);

}  // namespace
}  // namespace py_ort
