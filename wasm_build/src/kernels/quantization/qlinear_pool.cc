// com.microsoft's QLinearAveragePool and QLinearGlobalAveragePool: averages of quantized images, in either layout.
#include <cmath>

#include "kernels/quantization/integer_product.h"
#include "microkernels/window.h"
#include "kernels/pooling/pool.h"

namespace py_ort {
namespace {

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
    SpatialPlan plan;
    PY_ORT_TRY(SpatialPlan::make(global_ ? SpatialAttributes{} : spatial_, image.batch, image.spatial,
                                 global_ ? image.spatial : spatial_.kernel, image.channels, plan, true));
    Tensor input;
    PY_ORT_TRY(channels_last_of(x, image, channels_last_, input));
    const Image result{image.batch, image.channels, plan.out};
    const float factor = x_scale[0] / y_scale[0], shift = x.dtype == DType::int8 ? 128.0f : 0.0f;
    return with_channels_last_output(context, 0, x.dtype, channels_last_, result, [&](Tensor& y) -> Status {
      const uint8_t* first = input.data<uint8_t>();
      for_windows(plan.window, first,
                  [&](int32_t pixel, const PY_ORT_TARGET::OutputPixel& at, std::span<const uint8_t* const> taps) {
        const int64_t divisor = count_padding_ ? PY_ORT_TARGET::padded_taps(plan.window, at, plan.pad_end)
                                               : static_cast<int64_t>(taps.size());
        for (int64_t c = 0; c < image.channels; ++c) {
          const int64_t to = pixel * image.channels + c;
          const auto element = [&](const uint8_t* tap) {
            return integer_at(input, tap - first + c) - x_zero.integer(0);
          };
          if (divisor == 0) {
            store_quantized(y, to, 0, y_zero.integer(0));
          } else if (global_) {
            int32_t sum = 0;
            for (const uint8_t* tap : taps) sum += element(tap);
            store_quantized(y, to, static_cast<float>(sum) * (factor / static_cast<float>(divisor)), y_zero.integer(0));
          } else {
            // A mean is often just between two steps. Then it matters that onnxruntime adds floats here, and rounds
            // with the zero point added: that of bytes without a sign, which it makes of others.
            float sum = 0;
            for (const uint8_t* tap : taps) sum += static_cast<float>(element(tap)) * x_scale[0];
            const float mean = sum / static_cast<float>(divisor);
            store_quantized(y, to, std::nearbyint(mean / y_scale[0] + (y_zero[0] + shift)) - shift, 0);
          }
        }
      });
      return {};
    });
  }

 private:
  SpatialAttributes spatial_;
  bool global_ = false, channels_last_ = false, count_padding_ = false;
};

constexpr const char* kTypes = "int8,uint8;float32;int8,uint8;float32;int8,uint8";
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearAveragePool", kTypes, QLinearPool);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearGlobalAveragePool", kTypes, QLinearPool);

}  // namespace
}  // namespace py_ort
