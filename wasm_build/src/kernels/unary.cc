// The elementwise operators of one input: floats by the table of functions, integers here.
#include "unary.h"

#include <algorithm>

#include "dtypes.h"
#include "float_bits.h"
#include "lanes.h"

namespace py_ort {

UnaryParams unary_params(const UnaryFunction& function, const Attributes& attributes) {
  return {function.a_name ? attributes.number(function.a_name, function.a) : 0,
          function.b_name ? attributes.number(function.b_name, function.b) : 0};
}

void apply_unary(const UnaryFunction& function, UnaryParams params, const Tensor& in, Tensor& out) {
  const auto count = static_cast<size_t>(in.count());
  if (in.dtype == DType::float64) {
    const double* x = in.data<double>();
    double* y = out.mutable_data<double>();
    for (size_t i = 0; i < count; ++i) y[i] = function.f64(x[i], params.a, params.b);
    return;
  }
  const auto run = [&](const float* x, float* y, size_t n) {
    if (function.f32) return function.f32(x, y, n, params);
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(function.f64(x[i], params.a, params.b));
  };
  if (in.dtype == DType::float32) return run(in.data<float>(), out.mutable_data<float>(), count);
  alignas(16) float wide[kChunk];
  for (size_t at = 0; at < count; at += kChunk) {
    const size_t n = std::min(kChunk, count - at);
    run(static_cast<const float*>(widen(in.dtype, in.storage->data(), static_cast<int64_t>(at), n, wide)), wide, n);
    narrow(in.dtype, wide, out.storage->data(), static_cast<int64_t>(at), n);
  }
}

namespace {

bool is_float(DType dtype) { return lane_of(dtype) == Lane::f32 || lane_of(dtype) == Lane::f64; }

// Abs, Neg, Sign and Relu of integers; the others do not take them (Shrink goes by way of doubles).
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
    out.function_ = find_unary(approximate == "tanh" ? "FastGelu" : info.op_type);
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
    if (std::string_view(function_->op_type) == "Shrink") {
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

#define PY_ORT_UNARY(op_type, types) PY_ORT_KERNEL("", op_type, types, Unary)
PY_ORT_UNARY("Abs", PY_ORT_NUMBERS);
PY_ORT_UNARY("Sign", PY_ORT_NUMBERS);
PY_ORT_UNARY("Shrink", PY_ORT_NUMBERS);
PY_ORT_UNARY("Neg", PY_ORT_SIGNED_NUMBERS);
PY_ORT_UNARY("Relu", PY_ORT_SIGNED_NUMBERS);
PY_ORT_UNARY("Acos", PY_ORT_FLOATS);
PY_ORT_UNARY("Acosh", PY_ORT_FLOATS);
PY_ORT_UNARY("Asin", PY_ORT_FLOATS);
PY_ORT_UNARY("Asinh", PY_ORT_FLOATS);
PY_ORT_UNARY("Atan", PY_ORT_FLOATS);
PY_ORT_UNARY("Atanh", PY_ORT_FLOATS);
PY_ORT_UNARY("Ceil", PY_ORT_FLOATS);
PY_ORT_UNARY("Celu", PY_ORT_FLOATS);
PY_ORT_UNARY("Cos", PY_ORT_FLOATS);
PY_ORT_UNARY("Cosh", PY_ORT_FLOATS);
PY_ORT_UNARY("Elu", PY_ORT_FLOATS);
PY_ORT_UNARY("Erf", PY_ORT_FLOATS);
PY_ORT_UNARY("Exp", PY_ORT_FLOATS);
PY_ORT_UNARY("Floor", PY_ORT_FLOATS);
PY_ORT_UNARY("Gelu", PY_ORT_FLOATS);
PY_ORT_UNARY("HardSigmoid", PY_ORT_FLOATS);
PY_ORT_UNARY("HardSwish", PY_ORT_FLOATS);
PY_ORT_UNARY("LeakyRelu", PY_ORT_FLOATS);
PY_ORT_UNARY("Log", PY_ORT_FLOATS);
PY_ORT_UNARY("Mish", PY_ORT_FLOATS);
PY_ORT_UNARY("Reciprocal", PY_ORT_FLOATS);
PY_ORT_UNARY("Round", PY_ORT_FLOATS);
PY_ORT_UNARY("Selu", PY_ORT_FLOATS);
PY_ORT_UNARY("Sigmoid", PY_ORT_FLOATS);
PY_ORT_UNARY("Sin", PY_ORT_FLOATS);
PY_ORT_UNARY("Sinh", PY_ORT_FLOATS);
PY_ORT_UNARY("Softplus", PY_ORT_FLOATS);
PY_ORT_UNARY("Softsign", PY_ORT_FLOATS);
PY_ORT_UNARY("Sqrt", PY_ORT_FLOATS);
PY_ORT_UNARY("Swish", PY_ORT_FLOATS);
PY_ORT_UNARY("Tan", PY_ORT_FLOATS);
PY_ORT_UNARY("Tanh", PY_ORT_FLOATS);
PY_ORT_UNARY("ThresholdedRelu", PY_ORT_FLOATS);
#undef PY_ORT_UNARY
PY_ORT_KERNEL(kMicrosoftDomain, "Gelu", PY_ORT_FLOATS, Unary);
PY_ORT_KERNEL(kMicrosoftDomain, "QuickGelu", PY_ORT_FLOATS, Unary);
PY_ORT_KERNEL("", "IsNaN", PY_ORT_FLOATS "," PY_ORT_FLOAT8, Classify);
PY_ORT_KERNEL("", "IsInf", PY_ORT_FLOATS "," PY_ORT_FLOAT8, Classify);

}  // namespace
}  // namespace py_ort
