// Normalization of images over their pixels: InstanceNormalization, GroupNormalization, MeanVarianceNormalization.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "py_ort/microkernels.h"
#include "kernels/shared/spatial.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

Status run_normalize(const F32Normalize& f) {
  if (!run_microkernel(microkernels().f32_normalize, f))
    return out_of_memory("no memory for the scratch space of a normalization");
  return {};
}

Status check_channels(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t expected) {
  PY_ORT_ENSURE(x.rank() >= 2, "expected an image with batch and channels, got the shape ", x.dims);
  PY_ORT_ENSURE(scale.count() == expected && bias.count() == expected, "scale of shape ", scale.dims,
                " and bias of shape ", bias.dims, " should have ", expected, " elements for an image of shape ",
                x.dims);
  return {};
}

class InstanceNormalization {
 public:
  explicit InstanceNormalization(const KernelInfo& info) : epsilon_(info.attributes.number("epsilon", 1e-5f)) {}

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1), &bias = *context.input(2);
    PY_ORT_TRY(check_channels(x, scale, bias, x.rank() >= 2 ? x.dims[1] : 0));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    if (x.count() == 0) return {};
    F32Normalize f;
    f.rows = static_cast<int32_t>(x.dims[0] * x.dims[1]);
    f.n = static_cast<int32_t>(count_between(x.dims, 2, x.rank()));
    f.x = x.data<float>(), f.y = y->mutable_data<float>();
    f.scale = scale.data<float>(), f.bias = bias.data<float>();
    f.scale_rows = static_cast<int32_t>(x.dims[1]), f.scale_per_row = true;
    f.epsilon = epsilon_;
    return run_normalize(f);
  }

 private:
  float epsilon_;
};

class GroupNormalization {
 public:
  explicit GroupNormalization(const KernelInfo& info)
      : groups_(info.attributes.integer("num_groups", 1)), epsilon_(info.attributes.number("epsilon", 1e-5f)),
        scale_per_group_(info.since_version < 21) {}

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1), &bias = *context.input(2);
    PY_ORT_ENSURE(x.rank() >= 2 && groups_ > 0 && x.dims[1] % groups_ == 0, "an image of shape ", x.dims,
                  " cannot be split into ", groups_, " groups");
    const bool per_group = scale_per_group_ && scale.count() == groups_;
    PY_ORT_TRY(check_channels(x, scale, bias, per_group ? groups_ : x.dims[1]));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    if (x.count() == 0) return {};
    const int64_t channels = x.dims[1], pixels = count_between(x.dims, 2, x.rank()), in_group = channels / groups_;
    F32Normalize f;
    f.rows = static_cast<int32_t>(x.dims[0] * groups_), f.n = static_cast<int32_t>(in_group * pixels);
    f.x = x.data<float>(), f.y = y->mutable_data<float>();
    f.epsilon = epsilon_;
    PY_ORT_TRY(run_normalize(f));
    float* to = y->mutable_data<float>();
    for (int64_t row = 0; row < x.dims[0] * channels; ++row, to += pixels) {
      const int64_t channel = row % channels, at = per_group ? channel / in_group : channel;
      const float a = scale.data<float>()[at], b = bias.data<float>()[at];
      for (int64_t i = 0; i < pixels; ++i) to[i] = to[i] * a + b;
    }
    return {};
  }

 private:
  int64_t groups_;
  float epsilon_;
  bool scale_per_group_;
};

// Adds the rows of x, `f` of each element, to one sum per channel. Short sums are in floats; long ones would lose
// digits.
template <class F>
void sum_channels(const float* x, int64_t pixels, int64_t channels, std::vector<float>& block,
                  std::vector<double>& sums, F f) {
  constexpr int64_t kBlock = 64;
  std::fill(sums.begin(), sums.end(), 0.0);
  for (int64_t first = 0; first < pixels; first += kBlock) {
    std::fill(block.begin(), block.end(), 0.0f);
    float* sum = block.data();
    for (int64_t pixel = first; pixel < std::min(first + kBlock, pixels); ++pixel, x += channels)
      for (int64_t c = 0; c < channels; ++c) sum[c] += f(x[c], c);
    for (int64_t c = 0; c < channels; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(sum[c]);
  }
}

// InstanceNormalization (every channel is a group) and GroupNormalization of images whose channels are last.
class ChannelsLastNormalization {
 public:
  explicit ChannelsLastNormalization(const KernelInfo& info)
      : groups_(info.attributes.integer("num_groups", 0)), epsilon_(info.attributes.number("epsilon", 1e-5f)) {}

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1), &bias = *context.input(2);
    Image image;
    PY_ORT_TRY(Image::of(x, true, image));
    const int64_t channels = image.channels, groups = groups_ > 0 ? groups_ : channels;
    PY_ORT_ENSURE(groups > 0 && channels % groups == 0, "an image of shape ", x.dims, " cannot be split into ", groups,
                  " groups");
    PY_ORT_TRY(check_channels(x, scale, bias, channels));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    if (x.count() == 0) return {};
    const int64_t pixels = image.pixels();
    const auto width = static_cast<size_t>(channels);
    std::vector<float> block(width), factor(width), means(width);
    std::vector<double> sums(width);
    for (int64_t i = 0; i < image.batch; ++i) {
      const float* from = x.data<float>() + i * pixels * channels;
      sum_channels(from, pixels, channels, block, sums, [](float v, int64_t) { return v; });
      over_groups(sums, groups, pixels, [&](size_t c, double mean) { means[c] = static_cast<float>(mean); });
      const float* mean = means.data();
      sum_channels(from, pixels, channels, block, sums,
                   [mean](float v, int64_t c) { return (v - mean[c]) * (v - mean[c]); });
      over_groups(sums, groups, pixels, [&](size_t c, double variance) {
        factor[c] =
            static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon_))) * scale.data<float>()[c];
      });
      float* to = y->mutable_data<float>() + i * pixels * channels;
      const float *a = factor.data(), *b = bias.data<float>();
      for (int64_t pixel = 0; pixel < pixels; ++pixel, from += channels, to += channels)
        for (int64_t c = 0; c < channels; ++c) to[c] = (from[c] - mean[c]) * a[c] + b[c];
    }
    return {};
  }

 private:
  // Passes the average of its group to each channel.
  template <class Take>
  static void over_groups(const std::vector<double>& sums, int64_t groups, int64_t pixels, Take take) {
    const size_t each = sums.size() / static_cast<size_t>(groups);
    for (size_t first = 0; first < sums.size(); first += each) {
      double total = 0;
      for (size_t c = first; c < first + each; ++c) total += sums[c];
      for (size_t c = first; c < first + each; ++c)
        take(c, total / static_cast<double>(static_cast<int64_t>(each) * pixels));
    }
  }

  int64_t groups_;
  float epsilon_;
};

// (X - mean) / (deviation + 1e-9) over any axes, which are transposed to the end and back.
class MeanVarianceNormalization {
 public:
  explicit MeanVarianceNormalization(const KernelInfo& info) : axes_(info.attributes.integers("axes", {0, 2, 3})) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    std::vector<int64_t> axes = axes_;
    PY_ORT_TRY(normalize_axes(axes, x.rank()));
    std::vector<bool> reduced(x.dims.size());
    for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
    Dims dims, steps;  // kept axes, then reduced ones
    const Dims own_steps = strides_of(x.dims);
    int64_t n = 1;
    for (bool wanted : {false, true}) {
      for (size_t i = 0; i < x.dims.size(); ++i) {
        if (reduced[i] != wanted) continue;
        dims.push_back(x.dims[i]);
        steps.push_back(own_steps[i]);
        if (wanted) n *= x.dims[i];
      }
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    if (x.count() == 0) return {};
    Tensor turned;
    PY_ORT_TRY(Tensor::make(x.dtype, dims, turned));
    const Dims turned_steps = strides_of(dims);
    strided_copy(x, {0, steps}, turned, {0, turned_steps}, dims);
    F32Normalize f;
    f.rows = static_cast<int32_t>(x.count() / n), f.n = static_cast<int32_t>(n);
    f.x = turned.data<float>(), f.y = turned.mutable_data<float>();
    f.epsilon = 1e-18f;  // outside of the root: 1e-9
    PY_ORT_TRY(run_normalize(f));
    strided_copy(turned, {0, turned_steps}, *y, {0, steps}, dims);
    return {};
  }

 private:
  std::vector<int64_t> axes_;
};

constexpr const char* kTypes = "=float32,float16,bfloat16";
PY_ORT_KERNEL("", "InstanceNormalization", kTypes, WithHalf<InstanceNormalization>);
PY_ORT_KERNEL("", "GroupNormalization", kTypes, WithHalf<GroupNormalization>);
PY_ORT_KERNEL(kNhwcDomain, "InstanceNormalization", kTypes, WithHalf<ChannelsLastNormalization>);
PY_ORT_KERNEL(kNhwcDomain, "GroupNormalization", kTypes, WithHalf<ChannelsLastNormalization>);
PY_ORT_KERNEL("", "MeanVarianceNormalization", kTypes, WithHalf<MeanVarianceNormalization>);

}  // namespace
}  // namespace py_ort
