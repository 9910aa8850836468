// ConvInteger and QLinearConv: rows of pixels below the window, times the weights, a block of output pixels at a time.
#include <algorithm>

#include "kernels/shared/derived.h"
#include "kernels/quantization/integer_product.h"
#include "microkernels/window.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

// What the two operators share. Weights are [M, C/g, k…].
class IntegerConvolution {
 public:
  Status read(const KernelInfo& info) {
    group_ = info.attributes.integer("group", 1);
    return SpatialAttributes::read(info.attributes, spatial_);
  }

  // Calls store(where in the output, output channel, sum) for each element.
  // keep: whether the weights' zero points are constant.
  template <class Store>
  Status run(const Tensor& x, const Tensor& w, int32_t x_zero, const PerAxis& w_zero, bool keep, const Image& image,
             const SpatialPlan& plan, Store store) const {
    const Window& window = plan.window;
    const int64_t m = w.dims[0], channels = image.channels / group_, taps = window.taps(), k = channels * taps,
                  columns = m / group_;
    const int64_t pixels = window.pixels_out(), pixels_in_image = element_count(plan.out);
    Tensor last;
    PY_ORT_TRY(channels_last_of(x, image, false, last));
    if (channels == 1 && columns == 1) return each_channel(last, x, w, x_zero, w_zero, keep, plan, store);
    const std::vector<IntegerPanels>* panels;  // of each group
    PY_ORT_TRY(panels_.get(w, panels, [&](std::vector<IntegerPanels>& out) -> Status {
      out.resize(static_cast<size_t>(group_));
      for (int64_t g = 0; g < group_; ++g) {
        out[static_cast<size_t>(g)].fill(k, columns,
                                         [&](int64_t row, int64_t column) {  // rows in the order (tap, channel)
          const int64_t of = g * columns + column;
          return integer_at(w, (of * channels + row % channels) * taps + row / channels) - w_zero.integer(of);
        });
      }
      return {};
    }, keep));
    IntegerRows rows;
    const int64_t block = std::clamp<int64_t>((1 << 16) / std::max<int64_t>(1, k), 16, 1024);
    std::vector<int32_t> sums(static_cast<size_t>(block * columns));
    for (int64_t g = 0; g < group_; ++g) {
      PY_ORT_TARGET::OutputPixel at(window, 0);
      for (int64_t first = 0; first < pixels; first += block) {
        const int64_t count = std::min(block, pixels - first);
        rows.reset(count, k);
        for (int64_t i = 0; i < count; ++i, at.next(window)) {
          PY_ORT_TARGET::for_taps(window, at, last.data<uint8_t>(), [&](int32_t tap, const uint8_t* from) {
            if (!from) return;
            from += g * channels;
            int16_t* to = rows.row(i) + tap * channels;
            for (int64_t c = 0; c < channels; ++c)
              to[c] = static_cast<int16_t>((x.dtype == DType::uint8 ? from[c] : static_cast<int8_t>(from[c])) - x_zero);
          });
        }
        PY_ORT_TRY(multiply_integers(rows, (*panels)[static_cast<size_t>(g)], sums.data()));
        for (int64_t i = 0; i < count; ++i) {
          const int64_t pixel = first + i, batch = pixel / pixels_in_image;
          for (int64_t c = 0; c < columns; ++c)
            store((batch * m + g * columns + c) * pixels_in_image + pixel % pixels_in_image, g * columns + c,
                  sums[static_cast<size_t>(i * columns + c)]);
        }
      }
    }
    return {};
  }

  Status plan(const Tensor& x, const Tensor& w, Image& image, SpatialPlan& plan, Dims& dims) const {
    PY_ORT_TRY(Image::of(x, false, image));
    PY_ORT_ENSURE(w.rank() == x.rank() && group_ > 0 && image.channels == w.dims[1] * group_ && w.dims[0] % group_ == 0,
                  "weights of shape ", w.dims, " in ", group_, " groups do not fit an image of shape ", x.dims);
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, Dims(w.dims.begin() + 2, w.dims.end()),
                                 image.channels, plan));
    dims = Image::dims(false, image.batch, w.dims[0], plan.out);
    return {};
  }

 private:
  // A window of its own for each channel: no products of matrices, but all channels of a pixel at once. `last` is x
  // with its channels last.
  template <class Store>
  Status each_channel(const Tensor& last, const Tensor& x, const Tensor& w, int32_t x_zero, const PerAxis& w_zero,
                      bool keep, const SpatialPlan& plan, Store store) const {
    const Window& window = plan.window;
    const int64_t m = w.dims[0], taps = window.taps(), pixels_in_image = element_count(plan.out);
    const std::vector<int16_t>* weights;  // [taps, m]
    PY_ORT_TRY(weights_.get(w, weights, [&](std::vector<int16_t>& out) -> Status {
      out.resize(static_cast<size_t>(taps * m));
      for (int64_t of = 0; of < m; ++of)
        for (int64_t tap = 0; tap < taps; ++tap)
          out[static_cast<size_t>(tap * m + of)] =
              static_cast<int16_t>(integer_at(w, of * taps + tap) - w_zero.integer(of));
      return {};
    }, keep));
    std::vector<int32_t> sums(static_cast<size_t>(m));
    const auto add = [&](auto* from, const int16_t* weight) {
      int32_t* to = sums.data();
      for (int64_t c = 0; c < m; ++c) to[c] += static_cast<int16_t>(from[c] - x_zero) * weight[c];
    };
    PY_ORT_TARGET::OutputPixel at(window, 0);
    for (int64_t pixel = 0; pixel < window.pixels_out(); ++pixel, at.next(window)) {
      std::fill(sums.begin(), sums.end(), 0);
      PY_ORT_TARGET::for_taps(window, at, last.data<uint8_t>(), [&](int32_t tap, const uint8_t* from) {
        if (!from) return;
        if (x.dtype == DType::uint8) add(from, weights->data() + tap * m);
        else add(reinterpret_cast<const int8_t*>(from), weights->data() + tap * m);
      });
      for (int64_t c = 0; c < m; ++c)
        store((pixel / pixels_in_image * m + c) * pixels_in_image + pixel % pixels_in_image, c,
              sums[static_cast<size_t>(c)]);
    }
    return {};
  }

  SpatialAttributes spatial_;
  int64_t group_ = 1;
  Derived<std::vector<IntegerPanels>> panels_;
  Derived<std::vector<int16_t>> weights_;
};

class ConvInteger {
 public:
  static Status make(const KernelInfo& info, ConvInteger& out) { return out.convolution_.read(info); }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(1);
    Image image;
    SpatialPlan plan;
    Dims dims;
    PY_ORT_TRY(convolution_.plan(x, w, image, plan, dims));
    PerAxis x_zero, w_zero;
    PY_ORT_TRY(PerAxis::read(context.input(2), 1, "x_zero_point", x_zero));
    PY_ORT_TRY(PerAxis::read(context.input(3), w.dims[0], "w_zero_point", w_zero));
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::int32, dims, y));
    return convolution_.run(x, w, x_zero.integer(0), w_zero, Derived<int>::constant(context.input(3)), image, plan,
                            [&](int64_t at, int64_t, int32_t sum) { y->mutable_data<int32_t>()[at] = sum; });
  }

 private:
  IntegerConvolution convolution_;
};

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, an int32 bias.
class QLinearConv {
 public:
  static Status make(const KernelInfo& info, QLinearConv& out) { return out.convolution_.read(info); }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(3), *bias = context.input(8);
    Image image;
    SpatialPlan plan;
    Dims dims;
    PY_ORT_TRY(convolution_.plan(x, w, image, plan, dims));
    const int64_t m = w.dims[0];
    PerAxis x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "x_scale", x_scale));
    PY_ORT_TRY(PerAxis::read(context.input(2), 1, "x_zero_point", x_zero));
    PY_ORT_TRY(PerAxis::read(context.input(4), m, "w_scale", w_scale));
    PY_ORT_TRY(PerAxis::read(context.input(5), m, "w_zero_point", w_zero));
    PY_ORT_TRY(PerAxis::read(context.input(6), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(7), 1, "y_zero_point", y_zero));
    PY_ORT_ENSURE(!bias || bias->count() == m, "the bias of shape ", bias->dims, " should have ", m, " elements");
    Tensor* y;
    PY_ORT_TRY(context.output(0, context.input(7)->dtype, dims, y));
    const int32_t* plus = bias ? bias->data<int32_t>() : nullptr;
    return convolution_.run(x, w, x_zero.integer(0), w_zero, Derived<int>::constant(context.input(5)), image, plan,
                            [&](int64_t at, int64_t channel, int32_t sum) {
      store_quantized(
          *y, at, static_cast<float>(sum + (plus ? plus[channel] : 0)) * (x_scale[0] * w_scale[channel] / y_scale[0]),
          y_zero.integer(0));
    });
  }

 private:
  IntegerConvolution convolution_;
};

PY_ORT_KERNEL("", "ConvInteger", "int8,uint8", ConvInteger);
PY_ORT_KERNEL("", "QLinearConv", "int8,uint8;float32;int8,uint8;int8,uint8;float32;int8,uint8;float32;int8,uint8;int32",
              QLinearConv);

}  // namespace
}  // namespace py_ort
