// com.microsoft's QLinearAveragePool and QLinearGlobalAveragePool: averages of quantized images, in either layout.
#include <cstring>

#include "kernels/quantization/integer_product.h"
#include "kernels/shared/simd_math.h"
#include "microkernels/window.h"
#include "kernels/pooling/pool.h"

namespace py_ort {
namespace {

// Adds up each image and channel; sums are 0 at first.
template <class T>
void add_pixels(const T* x, const Image& image, bool channels_last, int32_t* __restrict sums) {
  const int64_t pixels = image.pixels(), channels = image.channels;
  if (channels_last) {
    for (int64_t n = 0; n < image.batch; ++n, sums += channels)
      for (int64_t pixel = 0; pixel < pixels; ++pixel, x += channels)
        for (int64_t c = 0; c < channels; ++c) sums[c] += x[c];
  } else {
    for (int64_t row = 0; row < image.batch * channels; ++row, x += pixels)
      for (int64_t pixel = 0; pixel < pixels; ++pixel) sums[row] += x[pixel];
  }
}

// The mean of a window, sixteen channels at a time. It is often halfway between two steps. The result then depends on
// onnxruntime's order: it adds floats, and rounds with the zero point added. It converts signed bytes to unsigned ones
// first.
class Mean {
 public:
  Mean(DType dtype, float x_scale, int32_t x_zero, float y_scale, float y_zero)
      : is_signed_(dtype == DType::int8), flip_(wasm_i8x16_splat(static_cast<int8_t>(flip_to_unsigned(dtype)))),
        x_scale_(simd::splat(x_scale)), x_zero_(simd::splat(static_cast<float>(zero_of_unsigned(dtype, x_zero)))),
        y_scale_(simd::splat(y_scale)), shift_(simd::splat(is_signed_ ? 128.0f : 0.0f)),
        y_zero_(simd::add(simd::splat(y_zero), shift_)) {}

  // Tensors are readable 16 bytes past their end.
  void of(std::span<const uint8_t* const> taps, int64_t channels, float divisor, uint8_t* y) const {
    const v128_t count = simd::splat(divisor > 0 ? divisor : 1.0f);
    for (int64_t c = 0; c < channels; c += 16) {
      const v128_t bytes = sixteen(taps, c, count);
      if (c + 16 <= channels) wasm_v128_store(y + c, bytes);
      else std::memcpy(y + c, &bytes, static_cast<size_t>(channels - c));
    }
  }

 private:
  [[gnu::noinline]] v128_t sixteen(std::span<const uint8_t* const> taps, int64_t c, v128_t count) const {
    using namespace simd;
    v128_t sums[4] = {splat(0), splat(0), splat(0), splat(0)}, floats[4];
    for (const uint8_t* tap : taps) {
      floats_of(wasm_v128_xor(wasm_v128_load(tap + c), flip_), floats);
#pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i) sums[i] = add(sums[i], mul(sub(floats[i], x_zero_), x_scale_));
    }
    const v128_t low = splat(is_signed_ ? -128.0f : 0.0f), high = splat(is_signed_ ? 127.0f : 255.0f);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      const v128_t steps = sub(wasm_f32x4_nearest(add(div(div(sums[i], count), y_scale_), y_zero_)), shift_);
      sums[i] = wasm_i32x4_trunc_sat_f32x4(at_most(at_least(steps, low), high));
    }
    const v128_t first = wasm_i16x8_narrow_i32x4(sums[0], sums[1]), second = wasm_i16x8_narrow_i32x4(sums[2], sums[3]);
    return is_signed_ ? wasm_i8x16_narrow_i16x8(first, second) : wasm_u8x16_narrow_i16x8(first, second);
  }

  bool is_signed_;
  v128_t flip_, x_scale_, x_zero_, y_scale_, shift_, y_zero_;
};

// Inputs: x, its scale and zero point, y's scale and zero point.
class QLinearPool {
 public:
  static Status make(const KernelInfo& info, QLinearPool& out) {
    out.global_ = info.op_type == "QLinearGlobalAveragePool";
    out.channels_last_ = info.attributes.integer("channels_last", 0) != 0;
    out.count_padding_ = info.attributes.integer("count_include_pad", 0) != 0;
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PerAxis x_scale, x_zero, y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "x_scale", x_scale));
    PY_ORT_TRY(PerAxis::read(context.input(2), 1, "x_zero_point", x_zero));
    PY_ORT_TRY(PerAxis::read(context.input(3), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(4), 1, "y_zero_point", y_zero));
    Image image;
    PY_ORT_TRY(Image::of(x, channels_last_, image));
    if (global_) return pool_all(context, x, image, x_zero.integer(0), x_scale[0] / y_scale[0], y_zero.integer(0));
    SpatialPlan plan;
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, spatial_.kernel, image.channels, plan, true));
    Tensor input;
    PY_ORT_TRY(channels_last_of(x, image, channels_last_, input));
    const Mean mean{x.dtype, x_scale[0], x_zero.integer(0), y_scale[0], y_zero[0]};
    const Image result{image.batch, image.channels, plan.out};
    return with_channels_last_output(context, 0, x.dtype, channels_last_, result, [&](Tensor& y) -> Status {
      for_windows(plan.window, input.data<uint8_t>(),
                  [&](int32_t pixel, const PY_ORT_TARGET::OutputPixel&, std::span<const uint8_t* const> taps) {
        // onnxruntime counts all taps here, even those of a last window beyond the padding.
        const Window& w = plan.window;
        const double all = 1.0 * w.kernel[0] * w.kernel[1] * w.kernel[2];
        const auto divisor = static_cast<float>(count_padding_ ? all : static_cast<double>(taps.size()));
        mean.of(taps, image.channels, divisor, y.mutable_data<uint8_t>() + pixel * image.channels);
      });
      return {};
    });
  }

 private:
  // Each channel's mean of all pixels.
  Status pool_all(KernelContext& context, const Tensor& x, const Image& image, int32_t x_zero, float factor,
                  int32_t y_zero) const {
    Tensor* y;
    const Dims ones(image.spatial.size(), 1);
    PY_ORT_TRY(context.output(0, x.dtype, Image::dims(channels_last_, image.batch, image.channels, ones), y));
    const int64_t pixels = image.pixels();
    const auto count = static_cast<int32_t>(pixels);
    std::vector<int32_t> sums(static_cast<size_t>(y->count()));
    if (x.dtype == DType::uint8) add_pixels(x.data<uint8_t>(), image, channels_last_, sums.data());
    else add_pixels(x.data<int8_t>(), image, channels_last_, sums.data());
    for (size_t i = 0; i < sums.size(); ++i) {
      const float sum = static_cast<float>(sums[i] - count * x_zero);
      store_quantized(*y, static_cast<int64_t>(i), pixels ? sum * (factor / static_cast<float>(pixels)) : 0, y_zero);
    }
    return {};
  }

  SpatialAttributes spatial_;
  bool global_ = false, channels_last_ = false, count_padding_ = false;
};

constexpr const char* kTypes = "int8,uint8;float32;int8,uint8;float32;int8,uint8";
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearAveragePool", kTypes, QLinearPool);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearGlobalAveragePool", kTypes, QLinearPool);

}  // namespace
}  // namespace py_ort
