// Transposed convolution: a matrix product gives each input pixel's share in all the output pixels below the window.
// The shares are then added up in place. Channels-first images are transposed before and after.
#include <algorithm>

#include "kernels/shared/derived.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/shared/half_precision.h"
#include "microkernels/activation.h"
#include "microkernels/window.h"
#include "kernels/matmul/product.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/kernel_features.h"
#include "kernels/shared/spatial.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

using PY_ORT_TARGET::apply;
using PY_ORT_TARGET::load_some;
using PY_ORT_TARGET::store_some;

template <bool kChannelsLast>
class ConvTranspose {
 public:
  static Status make(const KernelInfo& info, ConvTranspose& out) {
    const Attributes& a = info.attributes;
    out.group_ = a.integer("group", 1);
    out.out_channels_ = a.integer(dialect::kOutChannels, 0);
    const std::string layout = a.text(dialect::kWeightLayout, "");
    out.panels_ = layout == dialect::kPanel8;
    out.hwio_ = layout == dialect::kHwio;
    if (!layout.empty() && !out.panels_ && !out.hwio_) return invalid_graph("weight_layout cannot be ", layout);
    PY_ORT_TRY(SpatialAttributes::read(a, out.spatial_));
    if (out.panels_ && (out.out_channels_ <= 0 || out.spatial_.kernel.empty()))
      return invalid_graph("panel8 weights need the attributes out_channels and kernel_shape");
    return ProductEpilogue::read(info, out.epilogue_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(1), *bias = context.input(dialect::kProductBias), *z;
    Image image;
    PY_ORT_TRY(Image::of(x, kChannelsLast, image));
    Job job;
    job.channels = image.channels;
    PY_ORT_ENSURE(group_ > 0 && image.channels % group_ == 0, image.channels, " channels cannot be split into ", group_,
                  " groups");
    Dims kernel = spatial_.kernel;
    if (panels_) {
      job.out_channels = out_channels_;
    } else {
      const auto rank = static_cast<int64_t>(image.spatial.size());
      PY_ORT_ENSURE(w.rank() == rank + 2 && w.dims[hwio_ ? rank : 0] == image.channels, "weights of shape ", w.dims,
                    " do not fit ", image.channels, " channels and ", rank, " spatial axes");
      job.out_channels = (hwio_ ? w.dim(-1) : w.dims[1]) * group_;
      kernel.assign(w.dims.begin() + (hwio_ ? 0 : 2), w.dims.end() - (hwio_ ? 2 : 0));
    }
    PY_ORT_ENSURE(!bias || bias->count() == job.out_channels, "the bias of shape ", bias->dims, " does not fit ",
                  job.out_channels, " output channels");
    SpatialPlan plan;
    PY_ORT_TRY(SpatialPlan::transposed(spatial_, image.batch, image.spatial, kernel, job.out_channels, plan));
    job.window = plan.window;
    job.depthwise = !panels_ && group_ == job.channels && group_ == job.out_channels && group_ > 1;
    PY_ORT_ENSURE(!panels_ || w.dims == (Dims{group_, (job.columns() / group_ + 7) / 8, job.channels / group_, 8}),
                  "panel8 weights of shape ", w.dims, " do not fit ", job.channels, " channels and ", job.out_channels,
                  " output channels");
    const Image result{image.batch, job.out_channels, plan.out};
    PY_ORT_TRY(
        epilogue_.residual(context, Image::dims(kChannelsLast, result.batch, result.channels, result.spatial), z));
    Tensor input, residual;
    const Tensor* weights;
    PY_ORT_TRY(channels_last_of(x, image, kChannelsLast, input));
    PY_ORT_TRY(weights_.get(w, weights, [&](Tensor& out) { return prepare_weights(w, job, out); }));
    if (z) PY_ORT_TRY(channels_last_of(*z, result, kChannelsLast, residual));
    job.x = input.data<float>();
    job.w = weights->data<float>();
    return with_channels_last_output(context, 0, DType::float32, kChannelsLast, result, [&](Tensor& y) -> Status {
      job.y = y.mutable_data<float>();
      const float* const more = z ? residual.data<float>() : nullptr;
      const bool last = epilogue_.form().residual_last;
      begin(job, bias ? bias->data<float>() : nullptr, last ? nullptr : more);
      if (y.count() == 0) return {};
      if (job.channels > 0) PY_ORT_TRY(job.depthwise ? run_depthwise(job) : run_groups(job));
      if (!epilogue_.empty()) finish(y, last ? more : nullptr);
      return {};
    });
  }

 private:
  struct Job {
    Window window{};  // of the convolution whose transpose this is: `out` are the input's pixels here, `in`
                      // are the output's
    int64_t channels = 0, out_channels = 0;
    const float *x = nullptr, *w = nullptr;
    float* y = nullptr;
    int64_t columns() const { return window.taps() * out_channels; }
    bool depthwise = false;
  };

  // To [taps, M] for depthwise, otherwise to panels of K = C/g rows and (tap, output channel) columns for each group.
  Status prepare_weights(const Tensor& w, const Job& job, Tensor& out) const {
    const int64_t taps = job.window.taps(), k = job.channels / group_, n = job.out_channels / group_,
                  columns = taps * n;
    if (panels_) {
      out = w;
      return {};
    }
    // Steps in `w` along (input channel, tap, output channel).
    const Dims steps = hwio_ ? Dims{n, job.channels * n, 1} : Dims{n * taps, 1, taps};
    Tensor rows;
    PY_ORT_TRY(Tensor::make(DType::float32, {job.channels, taps, n}, rows));
    if (job.depthwise) {
      strided_copy(w, {0, steps}, rows, {0, {1, job.channels, 1}}, rows.dims);
      out = rows;
      return {};
    }
    strided_copy(w, {0, steps}, rows, {0, {columns, n, 1}}, rows.dims);
    PY_ORT_TRY(Tensor::make(DType::float32, {group_, (columns + 7) / 8, k, 8}, out));
    for (int64_t g = 0; g < group_; ++g)
      pack_panels(row_major(rows.data<float>() + g * k * columns, k, columns), 1,
                  out.mutable_data<float>() + g * static_cast<int64_t>(panels_size(k, columns)));
    return {};
  }

  // The result before the shares are added.
  static void begin(const Job& job, const float* bias, const float* z) {
    const int64_t pixels = int64_t{job.window.batch} * job.window.in[0] * job.window.in[1] * job.window.in[2];
    float* y = job.y;
    for (int64_t pixel = 0; pixel < pixels; ++pixel, y += job.out_channels)
      for (int64_t c = 0; c < job.out_channels; ++c) y[c] = (bias ? bias[c] : 0.0f) + (z ? *z++ : 0.0f);
  }

  // Applies function and number, then a residual.
  void finish(Tensor& y, const float* z) const {
    float* const to = y.mutable_data<float>();
    const auto count = static_cast<int32_t>(y.count());
    for (int32_t i = 0; i < count; i += 4) {
      const v128_t more = z ? load_some(z + i, count - i) : simd::splat(0);
      store_some(to + i, apply(epilogue_.form(), load_some(to + i, count - i), z ? &more : nullptr), count - i);
    }
  }

  // Calls add(input pixel, tap, place in y) for input pixels [first, last) and each tap inside the output.
  template <class Add>
  static void for_shares(const Job& job, int64_t first, int64_t last, Add add) {
    const Window& w = job.window;
    PY_ORT_TARGET::OutputPixel at(w, static_cast<int32_t>(first));
    for (int64_t pixel = first; pixel < last; ++pixel, at.next(w))
      PY_ORT_TARGET::for_taps(w, at, job.y, [&](int32_t tap, const float* to) {
        if (to) add(pixel, tap, const_cast<float*>(to));
      });
  }

  Status run_groups(const Job& job) const {
    const int64_t pixels = job.window.pixels_out(), k = job.channels / group_, n = job.out_channels / group_,
                  columns = job.window.taps() * n;
    const int64_t chunk = std::clamp<int64_t>((1 << 17) / std::max<int64_t>(1, columns) / 6 * 6, 6,
                                              std::max<int64_t>(6, pixels));  // shares then stay in the cache
    Tensor shares;
    PY_ORT_TRY(Tensor::make(DType::float32, {chunk, columns}, shares));
    ProductEnd end;
    end.c = shares.mutable_data<float>();
    end.c_stride = columns;
    for (int64_t group = 0; group < group_; ++group) {
      const float* panels = job.w + group * static_cast<int64_t>(panels_size(k, columns));
      for (int64_t first = 0; first < pixels; first += chunk) {
        const int64_t last = std::min(pixels, first + chunk);
        PY_ORT_TRY(multiply_panels({job.x + first * job.channels + group * k, last - first, k, job.channels, 1}, panels,
                                   columns, end));
        for_shares(job, first, last, [&](int64_t pixel, int32_t tap, float* to) {
          const float* from = end.c + (pixel - first) * columns + tap * n;
          to += group * n;
          int64_t c = 0;
          for (; c + 4 <= n; c += 4) simd::store(to + c, simd::add(simd::load(to + c), simd::load(from + c)));
          for (; c < n; ++c) to[c] += from[c];
        });
      }
    }
    return {};
  }

  static Status run_depthwise(const Job& job) {
    const auto n = static_cast<int32_t>(job.channels);
    for_shares(job, 0, job.window.pixels_out(), [&](int64_t pixel, int32_t tap, float* to) {
      const float *x = job.x + pixel * n, *w = job.w + int64_t{tap} * n;
      for (int32_t c = 0; c < n; c += 4)
        store_some(to + c, simd::mul_add(load_some(x + c, n - c), load_some(w + c, n - c), load_some(to + c, n - c)),
                   n - c);
    });
    return {};
  }

  SpatialAttributes spatial_;
  int64_t group_ = 1, out_channels_ = 0;
  bool panels_ = false, hwio_ = false;
  ProductEpilogue epilogue_;
  Derived<Tensor> weights_;
};

constexpr const char* kTypes = "=float32,float16,bfloat16";
PY_ORT_KERNEL("", "ConvTranspose", kTypes, WithHalf<ConvTranspose<false>>);
PY_ORT_KERNEL(kNhwcDomain, "ConvTranspose", kTypes, WithHalf<ConvTranspose<true>>);
PY_ORT_FEATURES("", "ConvTranspose", "epilogue,residual");
PY_ORT_FEATURES(kNhwcDomain, "ConvTranspose", "epilogue,residual");

}  // namespace
}  // namespace py_ort
