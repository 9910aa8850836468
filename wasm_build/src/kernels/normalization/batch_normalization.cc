// BatchNormalization, for inference and in training mode.
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "kernels/shared/simd_math.h"

namespace py_ort {
namespace {

class BatchNormalization {
 public:
  explicit BatchNormalization(const KernelInfo& info)
      : epsilon_(info.attributes.number("epsilon", 1e-5f)), momentum_(info.attributes.number("momentum", 0.9f)),
        training_(info.attributes.integer("training_mode", 0) != 0) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PY_ORT_ENSURE(x.rank() >= 1, "BatchNormalization does not take scalars");
    const int64_t channels = x.rank() > 1 ? x.dims[1] : 1;
    for (size_t i = 1; i < 5; ++i)
      PY_ORT_ENSURE(context.input(i)->count() == channels, "input ", i, " of shape ", context.input(i)->dims,
                    " does not fit the ", channels, " channels of ", x.dims);
    return x.dtype == DType::float64 ? run<double>(context, x, channels) : run<float>(context, x, channels);
  }

 private:
  template <class T>
  Status run(KernelContext& context, const Tensor& x, int64_t channels) const {
    const int64_t batch = x.dims[0], pixels = count_between(x.dims, 2, x.rank());
    const T *scale = context.input(1)->data<T>(), *bias = context.input(2)->data<T>(),
            *mean = context.input(3)->data<T>(), *variance = context.input(4)->data<T>();
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    std::vector<T> batch_mean, batch_variance;
    if (training_) {
      batch_statistics(x.data<T>(), batch, channels, pixels, batch_mean, batch_variance);
      const auto run_on = [&](size_t output, const T* old, const std::vector<T>& now) -> Status {
        Tensor* running;
        PY_ORT_TRY(context.output(output, x.dtype, {channels}, running));
        for (size_t c = 0; c < now.size(); ++c)
          running->mutable_data<T>()[c] = old[c] * static_cast<T>(momentum_) + now[c] * (1 - static_cast<T>(momentum_));
        return {};
      };
      PY_ORT_TRY(run_on(1, mean, batch_mean));
      PY_ORT_TRY(run_on(2, variance, batch_variance));
      mean = batch_mean.data(), variance = batch_variance.data();
    }
    const T* from = x.data<T>();
    T* to = y->mutable_data<T>();
    for (int64_t row = 0; row < batch * channels; ++row, from += pixels, to += pixels) {
      const int64_t c = row % channels;
      const T a = scale[c] / std::sqrt(variance[c] + static_cast<T>(epsilon_)), b = bias[c] - mean[c] * a;
      int64_t i = 0;
      if constexpr (std::is_same_v<T, float>)
        for (; i + 4 <= pixels; i += 4)
          simd::store(to + i, simd::mul_add(simd::load(from + i), simd::splat(a), simd::splat(b)));
      for (; i < pixels; ++i) to[i] = from[i] * a + b;
    }
    return {};
  }

  template <class T>
  static void batch_statistics(const T* x, int64_t batch, int64_t channels, int64_t pixels, std::vector<T>& mean,
                               std::vector<T>& variance) {
    const auto average = [&](auto value) {
      std::vector<T> out(static_cast<size_t>(channels));
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t n = 0; n < batch; ++n)
          for (int64_t i = 0; i < pixels; ++i)
            sum += value(static_cast<size_t>(c), static_cast<double>(x[(n * channels + c) * pixels + i]));
        out[static_cast<size_t>(c)] = static_cast<T>(sum / static_cast<double>(batch * pixels));
      }
      return out;
    };
    mean = average([](size_t, double v) { return v; });
    variance = average(
        [&](size_t c, double v) { return (v - static_cast<double>(mean[c])) * (v - static_cast<double>(mean[c])); });
  }

  float epsilon_, momentum_;
  bool training_;
};

PY_ORT_KERNEL("", "BatchNormalization", "float32,float16,bfloat16,float64", WithHalf<BatchNormalization>);

}  // namespace
}  // namespace py_ort
