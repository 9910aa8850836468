// com.microsoft's GroupNorm and SkipGroupNorm: groups of channels normalized, optionally followed by SiLU; channels are
// last by default.
#include <algorithm>
#include <cmath>

#include "kernels/shared/half_precision.h"
#include "microkernels/activation.h"
#include "py_ort/microkernels.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

template <bool kSkip>
class GroupNorm {
 public:
  explicit GroupNorm(const KernelInfo& info) {
    const Attributes& a = info.attributes;
    groups_ = a.integer("groups", 1), epsilon_ = a.number("epsilon", 1e-5f);
    silu_ = a.integer("activation", 0) != 0, channels_last_ = a.integer("channels_last", 1) != 0;
  }

  // Inputs: X, scale, bias; SkipGroupNorm also has the skip (shaped like X, or one number per channel) and a bias added
  // to it. Outputs: Y, the sum.
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1), &bias = *context.input(2);
    Image image;
    PY_ORT_TRY(Image::of(x, channels_last_, image));
    const int64_t channels = image.channels, pixels = image.pixels();
    PY_ORT_ENSURE(groups_ > 0 && channels % groups_ == 0 && scale.count() == channels && bias.count() == channels,
                  "GroupNorm of ", groups_, " groups got X of shape ", x.dims, " and a scale of shape ", scale.dims);
    Tensor first, sum = x;
    if (kSkip) {
      PY_ORT_TRY(add_skip(context, x, image, sum));
      context.output(1, sum);
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, x.dims, y));
    if (x.count() == 0) return {};
    if (channels_last_) {
      PY_ORT_TRY(Tensor::make(DType::float32, Image::dims(false, image.batch, channels, image.spatial), first));
      swap_channels(sum, first, image.batch, channels, pixels, false);
    } else {
      PY_ORT_TRY(Tensor::make(DType::float32, x.dims, first));
      std::copy_n(sum.data<float>(), sum.count(), first.mutable_data<float>());
    }
    F32Normalize f;
    f.rows = static_cast<int32_t>(image.batch * groups_), f.n = static_cast<int32_t>(channels / groups_ * pixels);
    f.x = first.data<float>(), f.y = first.mutable_data<float>();
    f.epsilon = epsilon_;
    if (!run_microkernel(microkernels().f32_normalize, f))
      return out_of_memory("no memory for the scratch space of a normalization");
    float* row = first.mutable_data<float>();
    const Activation silu{Activation::swish, 1, 0};
    for (int64_t i = 0; i < image.batch * channels; ++i, row += pixels) {
      const v128_t a = simd::splat(scale.data<float>()[i % channels]),
                   b = simd::splat(bias.data<float>()[i % channels]);
      for (int64_t k = 0; k < pixels; k += 4) {
        const auto left = static_cast<int32_t>(pixels - k);
        const v128_t v = simd::mul_add(PY_ORT_TARGET::load_some(row + k, left), a, b);
        PY_ORT_TARGET::store_some(row + k, silu_ ? PY_ORT_TARGET::activate(silu, v) : v, left);
      }
    }
    if (channels_last_) swap_channels(first, *y, image.batch, channels, pixels, true);
    else std::copy_n(first.data<float>(), first.count(), y->mutable_data<float>());
    return {};
  }

 private:
  Status add_skip(KernelContext& context, const Tensor& x, const Image& image, Tensor& sum) const {
    const Tensor &skip = *context.input(3), *more = context.input(4);
    const bool whole = skip.count() == x.count();
    PY_ORT_ENSURE(whole || skip.count() == image.batch * image.channels, "a skip of shape ", skip.dims,
                  " does not fit X of shape ", x.dims);
    PY_ORT_ENSURE(!more || more->count() == image.channels, "a bias of shape ", more->dims, " does not fit X of shape ",
                  x.dims);
    PY_ORT_TRY(Tensor::make(DType::float32, x.dims, sum));
    const int64_t in_image = image.channels * image.pixels();
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t batch = i / in_image,
                    channel = channels_last_ ? i % image.channels : i / image.pixels() % image.channels;
      sum.mutable_data<float>()[i] = x.data<float>()[i] +
                                     skip.data<float>()[whole ? i : batch * image.channels + channel] +
                                     (more ? more->data<float>()[channel] : 0.0f);
    }
    return {};
  }

  int64_t groups_;
  float epsilon_;
  bool silu_, channels_last_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "GroupNorm", "float32,float16,bfloat16", WithHalf<GroupNorm<false>>);
PY_ORT_KERNEL(kMicrosoftDomain, "SkipGroupNorm", "float32,float16,bfloat16", WithHalf<GroupNorm<true>>);

}  // namespace
}  // namespace py_ort
