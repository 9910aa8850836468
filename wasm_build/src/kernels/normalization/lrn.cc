// LRN (across channels) and LpNormalization (along an axis).
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class LRN {
 public:
  explicit LRN(const KernelInfo& info)
      : alpha_(info.attributes.number("alpha", 1e-4f)), beta_(info.attributes.number("beta", 0.75f)),
        bias_(info.attributes.number("bias", 1)), size_(info.attributes.integer("size", 1)) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PY_ORT_ENSURE(x.rank() >= 2 && size_ > 0, "LRN of size ", size_, " does not take the shape ", x.dims);
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    const int64_t channels = x.dims[1], pixels = count_between(x.dims, 2, x.rank());
    const int64_t before = (size_ - 1) / 2, after = size_ - 1 - before;
    std::vector<float> sums(static_cast<size_t>(pixels));
    for (int64_t n = 0; n < x.dims[0]; ++n) {
      const float* image = x.data<float>() + n * channels * pixels;
      for (int64_t c = 0; c < channels; ++c) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after); ++k)
          for (int64_t i = 0; i < pixels; ++i)
            sums[static_cast<size_t>(i)] += image[k * pixels + i] * image[k * pixels + i];
        float* to = y->mutable_data<float>() + (n * channels + c) * pixels;
        for (int64_t i = 0; i < pixels; ++i)
          to[i] = image[c * pixels + i] *
                  std::pow(bias_ + alpha_ / static_cast<float>(size_) * sums[static_cast<size_t>(i)], -beta_);
      }
    }
    return {};
  }

 private:
  float alpha_, beta_, bias_;
  int64_t size_;
};

class LpNormalization {
 public:
  explicit LpNormalization(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", -1)), p_(info.attributes.integer("p", 2)) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    int64_t axis;
    PY_ORT_TRY(normalize_axis(axis_, x.rank(), axis));
    if (p_ != 1 && p_ != 2) return not_implemented("LpNormalization with p = ", p_, " (1 and 2 are)");
    if (x.dtype == DType::float64) run<double>(x, axis, *y);
    else run<float>(x, axis, *y);
    return {};
  }

 private:
  template <class T>
  void run(const Tensor& x, int64_t axis, Tensor& y) const {
    const int64_t outer = count_between(x.dims, 0, axis), n = x.dims[static_cast<size_t>(axis)],
                  inner = count_between(x.dims, axis + 1, x.rank());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const T* from = x.data<T>() + o * n * inner + i;
        T* to = y.mutable_data<T>() + o * n * inner + i;
        T sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += p_ == 1 ? std::abs(from[k * inner]) : from[k * inner] * from[k * inner];
        const T norm = p_ == 1 ? sum : std::sqrt(sum);
        for (int64_t k = 0; k < n; ++k) to[k * inner] = norm == 0 ? T{0} : from[k * inner] / norm;
      }
    }
  }

  int64_t axis_, p_;
};

PY_ORT_KERNEL("", "LRN", "float32,float16,bfloat16", WithHalf<LRN>);
PY_ORT_KERNEL("", "LpNormalization", "float32,float16,bfloat16,float64", WithHalf<LpNormalization>);

}  // namespace
}  // namespace py_ort
