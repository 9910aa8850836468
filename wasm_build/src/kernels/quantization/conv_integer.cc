// ConvInteger and QLinearConv.
#include "kernels/shared/derived.h"
#include "kernels/quantization/integer_product.h"
#include "kernels/shared/spatial.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {
namespace {

// The common code of both operators. Weights are [M, C/g, k…], or in panels: [g, ceil(M/g/8), ceil(taps*C/g/4), 8, 4].
class IntegerConvolution {
 public:
  Status read(const KernelInfo& info) {
    const Attributes& a = info.attributes;
    group_ = a.integer("group", 1);
    const std::string layout = a.text(dialect::kWeightLayout, "");
    if (!layout.empty() && layout != dialect::kPanel8x4) return invalid_graph("weight_layout cannot be ", layout);
    if (!layout.empty()) packed_channels_ = a.integer(dialect::kOutChannels, 0);
    PY_ORT_TRY(SpatialAttributes::read(a, spatial_));
    if (packed() && (packed_channels_ <= 0 || group_ <= 0 || packed_channels_ % group_ || spatial_.kernel.empty()))
      return invalid_graph("panel8x4 weights need the attributes out_channels and kernel_shape");
    return {};
  }

  // channels_last: true if x is channels-last; y is.
  Status run(const Tensor& x, const Tensor& w, bool channels_last, int32_t x_zero, const PerAxis& w_zero,
             IntegerEnd end, const Image& image, const SpatialPlan& plan, Tensor& y) const {
    const Window& window = plan.window;
    const int64_t m = out_channels(w), channels = image.channels / group_, taps = window.taps(), columns = m / group_;
    Tensor last;
    PY_ORT_TRY(channels_last_of(x, image, channels_last, last));
    if (!packed() && channels == 1 && columns == 1) return each_channel(last, w, x_zero, w_zero, end, plan, y);
    const std::vector<IntegerPanels>* panels;  // of each group
    PY_ORT_TRY(panels_.get(w, panels, [&](std::vector<IntegerPanels>& out) -> Status {
      out.resize(static_cast<size_t>(group_));
      if (packed()) {
        const int64_t each = IntegerPanels::size(taps * channels, columns);
        for (int64_t g = 0; g < group_; ++g)
          out[static_cast<size_t>(g)].take(w.data<int8_t>() + g * each, taps * channels, columns);
        return {};
      }
      Tensor rows;  // [m, taps, channels]
      PY_ORT_TRY(Tensor::make(w.dtype, {m, taps, channels}, rows));
      swap_channels(w, rows, m, channels, taps, true);
      for (int64_t g = 0; g < group_; ++g)
        out[static_cast<size_t>(g)].fill(rows, g * columns * taps * channels, taps * channels, columns, 1,
                                         taps * channels);
      return {};
    }));
    end.zeros(m, w.dtype, [&](int64_t j) { return w_zero.integer(j); });
    I8Gemm g;
    g.rows = window.pixels_out(), g.k = static_cast<int32_t>(channels), g.taps = window.taps();
    g.flip = flip_to_unsigned(x.dtype), g.a_zero = zero_of_unsigned(x.dtype, x_zero);
    g.window = plan.pointwise() ? nullptr : &window;
    g.a_stride = window.pixel_stride, g.c_stride = static_cast<int32_t>(m);
    const int64_t size = y.dtype == DType::int32 ? 4 : 1;
    for (int64_t group = 0; group < group_; ++group) {
      g.a = last.data<uint8_t>() + group * channels;
      g.c = y.mutable_data<uint8_t>() + group * columns * size;
      end.apply(g, group * columns);
      g.b_zeros = end.b_zeros(group * columns);
      PY_ORT_TRY(multiply_integers(g, (*panels)[static_cast<size_t>(group)]));
    }
    return {};
  }

  Status plan(const Tensor& x, const Tensor& w, bool channels_last, Image& image, SpatialPlan& plan,
              Image& result) const {
    PY_ORT_TRY(Image::of(x, channels_last, image));
    Dims kernel = spatial_.kernel;
    if (packed()) {
      const int64_t rows = image.channels / group_ * element_count(kernel), columns = packed_channels_ / group_;
      PY_ORT_ENSURE(w.dtype == DType::int8 && image.channels % group_ == 0 &&
                        w.dims == (Dims{group_, (columns + 7) / 8, (rows + 3) / 4, 8, 4}),
                    "panel8x4 weights of shape ", w.dims, " do not fit ", image.channels, " channels in ", group_,
                    " groups and ", packed_channels_, " output channels");
    } else {
      PY_ORT_ENSURE(
          w.rank() == x.rank() && group_ > 0 && image.channels == w.dims[1] * group_ && w.dims[0] % group_ == 0,
          "weights of shape ", w.dims, " in ", group_, " groups do not fit an image of shape ", x.dims);
      kernel.assign(w.dims.begin() + 2, w.dims.end());
    }
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, kernel, image.channels, plan));
    result = {image.batch, out_channels(w), plan.out};
    return {};
  }
  int64_t out_channels(const Tensor& w) const { return packed() ? packed_channels_ : w.dims[0]; }

 private:
  bool packed() const { return packed_channels_ >= 0; }

  // Depthwise: each channel has its own window; processes all channels of a pixel at once.
  Status each_channel(const Tensor& x, const Tensor& w, int32_t x_zero, const PerAxis& w_zero, const IntegerEnd& end,
                      const SpatialPlan& plan, Tensor& y) const {
    const int64_t m = w.dims[0], taps = plan.window.taps(), padded = (m + 7) / 8 * 8;
    const Channels* packed;
    PY_ORT_TRY(channels_.get(w, packed, [&](Channels& out) -> Status {
      out.weights.resize(static_cast<size_t>((taps + 1) / 2 * padded * 2));
      out.sums.resize(static_cast<size_t>(m + 4));
      for (int64_t of = 0; of < m; ++of)
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int32_t value = integer_at(w, of * taps + tap) - w_zero.integer(of);
          out.weights[static_cast<size_t>((tap / 2 * padded + of) * 2 + tap % 2)] = static_cast<int16_t>(value);
          out.sums[static_cast<size_t>(of)] += value;
        }
      return {};
    }, w_zero.constant()));
    const std::vector<uint8_t> zeros(static_cast<size_t>(m + 16), static_cast<uint8_t>(x_zero));
    I8Depthwise d;
    end.apply(d);
    d.n = d.c_stride = static_cast<int32_t>(m), d.c = y.mutable_data<uint8_t>();
    d.window = &plan.window, d.x = x.data<uint8_t>(), d.zeros = zeros.data();
    d.flip = flip_to_unsigned(x.dtype), d.x_zero = zero_of_unsigned(x.dtype, x_zero);
    d.w = packed->weights.data(), d.w_sums = packed->sums.data();
    if (!run_microkernel(microkernels().i8_depthwise, d))
      return out_of_memory("no memory for the scratch space of a depthwise convolution of integers");
    return {};
  }

  SpatialAttributes spatial_;
  int64_t group_ = 1, packed_channels_ = -1;
  // In I8Depthwise's form.
  struct Channels {
    std::vector<int16_t> weights;
    std::vector<int32_t> sums;
  };
  Derived<std::vector<IntegerPanels>> panels_;
  Derived<Channels> channels_;
};

class ConvInteger {
 public:
  static Status make(const KernelInfo& info, ConvInteger& out) { return out.convolution_.read(info); }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(1);
    Image image, result;
    SpatialPlan plan;
    PY_ORT_TRY(convolution_.plan(x, w, false, image, plan, result));
    PerAxis x_zero, w_zero;
    PY_ORT_TRY(PerAxis::read(context.input(2), 1, "x_zero_point", x_zero));
    PY_ORT_TRY(PerAxis::read(context.input(3), convolution_.out_channels(w), "w_zero_point", w_zero));
    IntegerEnd end;
    return with_channels_last_output(context, 0, DType::int32, false, result, [&](Tensor& y) {
      return convolution_.run(x, w, false, x_zero.integer(0), w_zero, end, image, plan, y);
    });
  }

 private:
  IntegerConvolution convolution_;
};

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, an int32 bias.
template <bool kChannelsLast>
class QLinearConv {
 public:
  static Status make(const KernelInfo& info, QLinearConv& out) { return out.convolution_.read(info); }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(3), *bias = context.input(8);
    Image image, result;
    SpatialPlan plan;
    PY_ORT_TRY(convolution_.plan(x, w, kChannelsLast, image, plan, result));
    const int64_t m = convolution_.out_channels(w);
    PerAxis x_scale, x_zero, w_scale, w_zero, y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "x_scale", x_scale));
    PY_ORT_TRY(PerAxis::read(context.input(2), 1, "x_zero_point", x_zero));
    PY_ORT_TRY(PerAxis::read(context.input(4), m, "w_scale", w_scale));
    PY_ORT_TRY(PerAxis::read(context.input(5), m, "w_zero_point", w_zero));
    PY_ORT_TRY(PerAxis::read(context.input(6), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(7), 1, "y_zero_point", y_zero));
    PY_ORT_ENSURE(!bias || bias->count() == m, "the bias of shape ", bias->dims, " should have ", m, " elements");
    IntegerEnd end;
    end.scales(m, [&](int64_t j) { return x_scale[0] * w_scale[j] / y_scale[0]; });
    end.bias = bias ? bias->data<int32_t>() : nullptr;
    const DType dtype = context.input(7)->dtype;
    end.quantize(dtype, y_zero.integer(0));
    return with_channels_last_output(context, 0, dtype, kChannelsLast, result, [&](Tensor& y) {
      return convolution_.run(x, w, kChannelsLast, x_zero.integer(0), w_zero, end, image, plan, y);
    });
  }

 private:
  IntegerConvolution convolution_;
};

PY_ORT_KERNEL("", "ConvInteger", "int8,uint8", ConvInteger);
constexpr const char* kTypes = "int8,uint8;float32;int8,uint8;int8,uint8;float32;int8,uint8;float32;int8,uint8;int32";
PY_ORT_KERNEL("", "QLinearConv", kTypes, QLinearConv<false>);
PY_ORT_KERNEL(kNhwcDomain, "QLinearConv", kTypes, QLinearConv<true>);

}  // namespace
}  // namespace py_ort
