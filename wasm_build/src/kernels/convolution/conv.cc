// Convolution. The micro-kernels work on channels-last images; channels-first ones are transposed before and after.
//   1x1, stride 1:  a plain matrix product of the pixels
//   depthwise:      f32_depthwise 3x3, stride 1:  f32_winograd if it is faster and the weights are constant
//   all others:     f32_gemm, its rows gathered below the window (no im2col buffer); one product per group
#include "kernels/shared/columns.h"
#include "kernels/shared/derived.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/product.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/kernel_features.h"
#include "kernels/shared/spatial.h"
#include "kernels/shared/strided.h"
#include "kernels/convolution/winograd.h"

namespace py_ort {
namespace {

enum class WeightLayout : uint8_t { onnx /* [M, C/g, k…] */, channels_last /* [M, k…, C/g] */, hwio, panel8 };

template <bool kChannelsLast>
class Conv {
 public:
  static Status make(const KernelInfo& info, Conv& out) {
    const Attributes& a = info.attributes;
    out.group_ = a.integer("group", 1);
    out.out_channels_ = a.integer(dialect::kOutChannels, 0);
    const std::string layout = a.text(dialect::kWeightLayout, "");
    if (layout == dialect::kPanel8) out.layout_ = WeightLayout::panel8;
    else if (layout == dialect::kHwio) out.layout_ = WeightLayout::hwio;
    else if (!layout.empty()) return invalid_graph("weight_layout cannot be ", layout);
    else if (info.domain == kMicrosoftDomain && info.op_type == "NhwcConv") out.layout_ = WeightLayout::channels_last;
    if (out.layout_ == WeightLayout::panel8 && out.out_channels_ <= 0)
      return invalid_graph("panel8 weights need the attribute out_channels");
    PY_ORT_TRY(SpatialAttributes::read(a, out.spatial_));
    if (out.layout_ == WeightLayout::panel8 && out.spatial_.kernel.empty())
      return invalid_graph("panel8 weights need the attribute kernel_shape");
    if constexpr (kChannelsLast) out.columns_ = ColumnAttributes::of(a);
    return ProductEpilogue::read(info, out.epilogue_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &w = *context.input(1), *bias = context.input(dialect::kProductBias),
                 *given = context.input(dialect::kProductResidual), *z;
    Tensor x, residual;
    Columns x_at, z_at, y_at;  // for channels-last images only
    if constexpr (kChannelsLast) {
      PY_ORT_TRY(seen_columns(*context.input(0), columns_.x, x, x_at));
      if (given) {
        PY_ORT_TRY(seen_columns(*given, columns_.residual, residual, z_at));
        given = &residual;
      }
    } else {
      x = *context.input(0);
    }
    if (job_.x_dims != x.dims || job_.w_dims != w.dims) {
      Job other;
      PY_ORT_TRY(describe(x, w, other));
      job_ = std::move(other);
    }
    Job& job = job_;
    const Image& result = job.result;
    PY_ORT_ENSURE(!bias || bias->count() == job.out_channels, "the bias of shape ", bias->dims, " does not fit ",
                  job.out_channels, " output channels");
    Tensor input;
    PY_ORT_TRY(epilogue_.residual(given, job.y_dims, z));
    const Tensor* weights;
    PY_ORT_TRY(channels_last_of(x, job.image, kChannelsLast, input));
    PY_ORT_TRY(weights_.get(w, weights, [&](Tensor& out) { return prepare_weights(w, job, out); }));
    if (!kChannelsLast && z) PY_ORT_TRY(channels_last_of(*z, result, false, residual));
    if constexpr (kChannelsLast) job.plan.window.pixel_stride = static_cast<int32_t>(x_at.pitch);
    job.z_stride = static_cast<int32_t>(kChannelsLast ? z_at.pitch : job.out_channels);
    job.x = input.data<float>() + x_at.first;
    job.w = weights->data<float>();
    job.bias = bias ? bias->data<float>() : nullptr;
    job.z = z ? residual.data<float>() + z_at.first : nullptr;
    const auto convolve = [&](Tensor& y) -> Status {
      if (y.count() == 0) return {};
      job.y = y.mutable_data<float>() + y_at.first;
      if (job.depthwise) return run_depthwise(job);
      if (group_ == 1 && w.storage->constant() && winograd_pays(job.plan, job.in_channels, job.out_channels))
        return run_winograd(job, w);
      return run_groups(job);
    };
    if constexpr (kChannelsLast) {
      residual = {};
      // The result may be in the residual's place: each element of the residual is read just before its sum is written.
      const std::initializer_list<size_t> over = {3}, none = {};
      const bool whole = job.z && columns_.residual.empty();
      Tensor y;
      PY_ORT_TRY(column_output(context, DType::float32, job.y_dims, columns_, y, y_at, whole ? over : none));
      job.y_stride = static_cast<int32_t>(y_at.pitch);
      return convolve(y);
    } else {
      job.y_stride = static_cast<int32_t>(job.out_channels);
      return with_channels_last_output(context, 0, DType::float32, false, result, convolve);
    }
  }

 private:
  // Facts that follow from the sizes of X and the weights, mostly the same as in the last run; and pointers of this
  // run.
  struct Job {
    Dims x_dims, w_dims, y_dims;
    Image image, result;
    SpatialPlan plan;
    int64_t in_channels = 0, out_channels = 0;
    bool depthwise = false;
    const float *x = nullptr, *w = nullptr, *bias = nullptr, *z = nullptr;
    float* y = nullptr;
    int32_t y_stride = 0, z_stride = 0;  // from pixel to pixel
  };

  Status describe(const Tensor& x, const Tensor& w, Job& job) const {
    Dims kernel;
    PY_ORT_TRY(Image::of(x, kChannelsLast, job.image));
    const Image& image = job.image;
    PY_ORT_TRY(describe_weights(w, image, kernel, job));
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, kernel, image.channels, job.plan));
    job.result = {image.batch, job.out_channels, job.plan.out};
    job.y_dims = Image::dims(kChannelsLast, image.batch, job.out_channels, job.plan.out);
    job.x_dims = x.dims, job.w_dims = w.dims;
    return {};
  }

  // Sizes from the weights, in any layout.
  Status describe_weights(const Tensor& w, const Image& image, Dims& kernel, Job& job) const {
    job.in_channels = image.channels;
    PY_ORT_ENSURE(group_ > 0 && image.channels % group_ == 0, image.channels, " channels cannot be split into ", group_,
                  " groups");
    const int64_t per_group = image.channels / group_;
    int64_t weights_per_group = per_group;
    if (layout_ == WeightLayout::panel8) {
      job.out_channels = out_channels_;
      kernel = spatial_.kernel;
      const int64_t columns = out_channels_ / group_;
      const Dims expected{group_, (columns + 7) / 8, element_count(kernel) * per_group, 8};
      PY_ORT_ENSURE(w.dims == expected, "panel8 weights should have the shape ", expected, ", not ", w.dims);
    } else {
      PY_ORT_ENSURE(w.rank() == static_cast<int64_t>(image.spatial.size()) + 2, "weights of shape ", w.dims,
                    " do not fit an image with ", image.spatial.size(), " spatial axes");
      switch (layout_) {
        case WeightLayout::hwio:
          kernel.assign(w.dims.begin(), w.dims.end() - 2);
          job.out_channels = w.dim(-1), weights_per_group = w.dim(-2);
          break;
        case WeightLayout::channels_last:
          kernel.assign(w.dims.begin() + 1, w.dims.end() - 1);
          job.out_channels = w.dims[0], weights_per_group = w.dim(-1);
          break;
        default:
          kernel.assign(w.dims.begin() + 2, w.dims.end());
          job.out_channels = w.dims[0], weights_per_group = w.dims[1];
      }
    }
    PY_ORT_ENSURE(weights_per_group == per_group && job.out_channels % group_ == 0, "weights of shape ", w.dims,
                  " do not fit ", image.channels, " channels in ", group_, " groups");
    job.depthwise = per_group == 1 && job.out_channels == group_ && layout_ != WeightLayout::panel8;
    return {};
  }

  // To [taps, M] for depthwise, otherwise to panels for each group.
  Status prepare_weights(const Tensor& w, const Job& job, Tensor& out) const {
    if (layout_ == WeightLayout::panel8 || (layout_ == WeightLayout::hwio && job.depthwise)) {
      out = w;
      return {};
    }
    const int64_t m = job.out_channels, channels = job.in_channels / group_, taps = job.plan.window.taps(),
                  columns = m / group_;
    if (job.depthwise) {
      PY_ORT_TRY(Tensor::make(DType::float32, {taps, m}, out));
      strided_copy(w, {0, {1, taps}}, out, {0, {m, 1}}, out.dims);
      return {};
    }
    // Steps in `w` along (tap, channel, column of a group): channels and taps become the rows of a matrix.
    Tensor rows = w;
    int64_t row_step = 1, column_step = taps * channels;
    if (layout_ == WeightLayout::hwio) {
      row_step = m, column_step = 1;
    } else if (layout_ == WeightLayout::onnx && taps > 1 && channels > 1) {
      PY_ORT_TRY(Tensor::make(DType::float32, {m, taps, channels}, rows));
      strided_copy(w, {0, {taps * channels, 1, taps}}, rows, {0, {taps * channels, channels, 1}}, rows.dims);
    }
    const int64_t k = taps * channels;
    PY_ORT_TRY(Tensor::make(DType::float32, {group_, (columns + 7) / 8, k, 8}, out));
    for (int64_t g = 0; g < group_; ++g)
      pack_panels({rows.data<float>() + g * columns * column_step, k, columns, row_step, column_step}, 1,
                  out.mutable_data<float>() + g * static_cast<int64_t>(panels_size(k, columns)));
    return {};
  }

  Status run_depthwise(const Job& job) const {
    F32Depthwise d;
    d.window = &job.plan.window;
    d.channels = static_cast<int32_t>(job.out_channels);
    PY_ORT_TRY(zero_floats(static_cast<size_t>(job.out_channels + 8), d.zeros));
    d.x = job.x, d.w = job.w, d.bias = job.bias;
    d.z = job.z, d.z_stride = job.z_stride, d.y = job.y, d.y_stride = job.y_stride;
    d.epilogue = epilogue_.form();
    if (!run_microkernel(microkernels().f32_depthwise, d))
      return out_of_memory("no memory for the scratch space of a depthwise convolution");
    return {};
  }

  Status run_winograd(const Job& job, const Tensor& w) const {
    const Tensor* transformed;
    PY_ORT_TRY(winograd_.get(
        w, transformed, [&](Tensor& out) { return winograd_weights(job.w, job.in_channels, job.out_channels, out); }));
    F32Winograd f;
    f.window = &job.plan.window;
    f.k = static_cast<int32_t>(job.in_channels), f.n = static_cast<int32_t>(job.out_channels);
    PY_ORT_TRY(zero_floats(static_cast<size_t>(job.in_channels), f.zeros));
    f.x = job.x, f.weights = transformed->data<float>(), f.bias = job.bias;
    f.z = job.z, f.z_stride = job.z_stride, f.y = job.y, f.y_stride = job.y_stride;
    f.epilogue = epilogue_.form();
    if (!run_microkernel(microkernels().f32_winograd, f))
      return out_of_memory("no memory for the scratch space of a convolution");
    return {};
  }

  Status run_groups(const Job& job) const {
    const Window& window = job.plan.window;
    const int64_t channels = job.in_channels / group_, columns = job.out_channels / group_;
    F32Gemm g;
    g.rows = window.pixels_out();
    g.n = static_cast<int32_t>(columns), g.k = static_cast<int32_t>(channels), g.taps = window.taps();
    g.a_stride = window.pixel_stride;
    g.window = job.plan.pointwise() ? nullptr : &window;
    PY_ORT_TRY(zero_floats(static_cast<size_t>(channels), g.zeros));
    g.c_stride = job.y_stride, g.z_stride = job.z_stride;
    g.epilogue = epilogue_.form();
    for (int64_t group = 0; group < group_; ++group) {
      g.a = job.x + group * channels;
      g.b = job.w + group * static_cast<int64_t>(panels_size(channels * g.taps, columns));
      g.bias = job.bias ? job.bias + group * columns : nullptr;
      g.z = job.z ? job.z + group * columns : nullptr;
      g.c = job.y + group * columns;
      PY_ORT_TRY(run_gemm(g));
    }
    return {};
  }

  SpatialAttributes spatial_;
  int64_t group_ = 1, out_channels_ = 0;
  WeightLayout layout_ = WeightLayout::onnx;
  ProductEpilogue epilogue_;
  ColumnAttributes columns_;
  Derived<Tensor> weights_, winograd_;
  mutable Job job_;
};

constexpr const char* kTypes = "=float32,float16,bfloat16";
PY_ORT_KERNEL("", "Conv", kTypes, WithHalf<Conv<false>>);
PY_ORT_KERNEL(kMicrosoftDomain, "NhwcConv", kTypes, WithHalf<Conv<true>>);
PY_ORT_KERNEL(kNhwcDomain, "Conv", kTypes, WithHalf<Conv<true>>);
PY_ORT_FEATURES("", "Conv", "epilogue,residual");
PY_ORT_FEATURES(kNhwcDomain, "Conv", "epilogue,residual,columns");

}  // namespace
}  // namespace py_ort
