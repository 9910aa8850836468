// Normalization over the last axes: LayerNormalization, RMSNormalization, and com.microsoft's operators with a skip
// connection.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/broadcast.h"
#include "kernels/shared/half_precision.h"
#include "py_ort/microkernels.h"

namespace py_ort {
namespace {

Status run_normalize(const F32Normalize& f) {
  if (!run_microkernel(microkernels().f32_normalize, f))
    return out_of_memory("no memory for the scratch space of a normalization");
  return {};
}

void normalize(const F32Normalize& sizes, const double* x, double* y, float* mean_out, float* inverse_out) {
  for (int32_t row = 0; row < sizes.rows; ++row, x += sizes.n, y += sizes.n) {
    double mean = 0, squares = 0;
    for (int32_t i = 0; i < sizes.n; ++i) mean += x[i];
    mean = sizes.centered ? mean / sizes.n : 0;
    for (int32_t i = 0; i < sizes.n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double inverse = 1 / std::sqrt(squares / sizes.n + static_cast<double>(sizes.epsilon));
    for (int32_t i = 0; i < sizes.n; ++i) y[i] = (x[i] - mean) * inverse;
    if (mean_out) mean_out[row] = static_cast<float>(mean);
    if (inverse_out) inverse_out[row] = static_cast<float>(inverse);
  }
}

// y = y * scale + bias, both broadcast to y.
template <class T>
Status scale_and_shift(Tensor& y, const Tensor* scale, const Tensor* bias) {
  const auto apply = [&](const Tensor* operand, auto combine) -> Status {
    if (!operand) return {};
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&y.dims, &operand->dims}, broadcast));
    PY_ORT_ENSURE(broadcast.dims == y.dims, "a scale or bias of shape ", operand->dims, " does not broadcast to ",
                  y.dims);
    T* to = y.mutable_data<T>();
    const T* from = operand->data<T>();
    broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
      for (int64_t i = 0; i < broadcast.inner; ++i)
        to[at + i] = combine(to[at + i], from[offsets[1] + i * broadcast.steps[1]]);
    });
    return {};
  };
  PY_ORT_TRY(apply(scale, [](T a, T b) { return a * b; }));
  return apply(bias, [](T a, T b) { return a + b; });
}

template <bool kCentered>
class LayerNormalization {
 public:
  static constexpr bool narrowed(size_t output) { return output == 0; }  // mean and deviation are float32 whatever X is

  explicit LayerNormalization(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", -1)), epsilon_(info.attributes.number("epsilon", 1e-5f)) {}

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), *scale = context.input(1), *bias = kCentered ? context.input(2) : nullptr;
    int64_t axis;
    PY_ORT_TRY(normalize_axis(axis_, x.rank(), axis));
    Tensor *y, *mean = nullptr, *inverse = nullptr;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y, {0}));
    Dims reduced(x.dims.begin(), x.dims.begin() + static_cast<ptrdiff_t>(axis));
    reduced.resize(x.dims.size(), 1);
    if constexpr (kCentered) {
      if (context.wants(1)) PY_ORT_TRY(context.output(1, DType::float32, reduced, mean));
      if (context.wants(2)) PY_ORT_TRY(context.output(2, DType::float32, reduced, inverse));
    } else if (context.wants(1)) {
      PY_ORT_TRY(context.output(1, DType::float32, reduced, inverse));
    }
    F32Normalize f;
    f.rows = static_cast<int32_t>(count_between(x.dims, 0, axis));
    f.n = static_cast<int32_t>(count_between(x.dims, axis, x.rank()));
    f.centered = kCentered, f.epsilon = epsilon_;
    f.mean = mean ? mean->mutable_data<float>() : nullptr;
    f.inverse_deviation = inverse ? inverse->mutable_data<float>() : nullptr;
    if (x.count() == 0) return {};
    if (x.dtype == DType::float64) {
      normalize(f, x.data<double>(), y->mutable_data<double>(), f.mean, f.inverse_deviation);
      return scale_and_shift<double>(*y, scale, bias);
    }
    f.x = x.data<float>(), f.y = y->mutable_data<float>();
    const auto fits = [&](const Tensor* t) {
      return !t || t->dims == Dims(x.dims.begin() + static_cast<ptrdiff_t>(axis), x.dims.end());
    };
    const bool direct = fits(scale) && fits(bias);
    if (direct) f.scale = scale ? scale->data<float>() : nullptr, f.bias = bias ? bias->data<float>() : nullptr;
    PY_ORT_TRY(run_normalize(f));
    return direct ? Status{} : scale_and_shift<float>(*y, scale, bias);
  }

 private:
  int64_t axis_;
  float epsilon_;
};

// True if `small` equals the last axes of `dims`, so that it is repeated along the axes before.
bool repeats(const Dims& small, const Dims& dims) {
  const auto own = std::find_if(small.begin(), small.end(), [](int64_t dim) { return dim != 1; });
  const auto rank = small.end() - own;
  return rank <= static_cast<ptrdiff_t>(dims.size()) && std::equal(own, small.end(), dims.end() - rank);
}

// Inputs: X, skip, scale, [bias of the normalization unless it is a root mean square,] bias added to the skip. Outputs:
// Y, mean, inverse deviation, sum.
template <bool kCentered>
class SkipLayerNormalization {
 public:
  static constexpr bool narrowed(size_t output) { return output == 0 || output == 3; }

  explicit SkipLayerNormalization(const KernelInfo& info) : epsilon_(info.attributes.number("epsilon", 1e-12f)) {}

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &skip = *context.input(1), &scale = *context.input(2);
    const Tensor *bias = kCentered ? context.input(3) : nullptr, *skip_bias = context.input(kCentered ? 4 : 3);
    PY_ORT_ENSURE(x.rank() >= 2, "expected X with two or three axes, got the shape ", x.dims);
    const int64_t n = x.dims.back(), rows = n ? x.count() / n : 0;
    const int64_t skip_rows = n ? skip.count() / n : 0;
    PY_ORT_ENSURE(skip.rank() >= 1 && skip.dims.back() == n && repeats(skip.dims, x.dims), "the skip of shape ",
                  skip.dims, " does not fit X of shape ", x.dims);
    for (const Tensor* t : {&scale, bias, skip_bias})
      PY_ORT_ENSURE(!t || t->count() == n, "a scale or bias of shape ", t->dims, " does not fit X of shape ", x.dims);
    Dims reduced = x.dims;
    reduced.back() = 1;
    Tensor *y, *mean = nullptr, *inverse = nullptr, *sum = nullptr;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y, {0, 1}));
    if (context.wants(1)) PY_ORT_TRY(context.output(1, DType::float32, reduced, mean));
    if (context.wants(2)) PY_ORT_TRY(context.output(2, DType::float32, reduced, inverse));
    if (context.wants(3)) PY_ORT_TRY(context.output(3, x.dtype, x.dims, sum, {0, 1}));
    F32Normalize f;
    f.rows = static_cast<int32_t>(rows), f.n = static_cast<int32_t>(n);
    f.x = x.data<float>(), f.y = y->mutable_data<float>();
    f.skip = skip.data<float>(), f.skip_rows = static_cast<int32_t>(skip_rows);
    f.skip_bias = skip_bias ? skip_bias->data<float>() : nullptr;
    f.scale = scale.data<float>(), f.bias = bias ? bias->data<float>() : nullptr;
    f.centered = kCentered, f.epsilon = epsilon_;
    f.sum = sum ? sum->mutable_data<float>() : nullptr;
    f.mean = mean ? mean->mutable_data<float>() : nullptr;
    f.inverse_deviation = inverse ? inverse->mutable_data<float>() : nullptr;
    return run_normalize(f);
  }

 private:
  float epsilon_;
};

constexpr const char* kTypes = "float32,float16,bfloat16,float64";
constexpr const char* kSkipTypes = "float32,float16,bfloat16";
PY_ORT_KERNEL("", "LayerNormalization", kTypes, WithHalf<LayerNormalization<true>>);
PY_ORT_KERNEL("", "RMSNormalization", kTypes, WithHalf<LayerNormalization<false>>);
PY_ORT_KERNEL("", "SimplifiedLayerNormalization", kTypes, WithHalf<LayerNormalization<false>>);
PY_ORT_KERNEL(kMicrosoftDomain, "SimplifiedLayerNormalization", kTypes, WithHalf<LayerNormalization<false>>);
PY_ORT_KERNEL(kMicrosoftDomain, "SkipLayerNormalization", kSkipTypes, WithHalf<SkipLayerNormalization<true>>);
PY_ORT_KERNEL(kMicrosoftDomain, "SkipSimplifiedLayerNormalization", kSkipTypes,
              WithHalf<SkipLayerNormalization<false>>);

}  // namespace
}  // namespace py_ort
