// DeformConv: a convolution whose taps are moved by offsets, and weighted by a mask.
#include "kernels/shared/bilinear.h"
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/product.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

class DeformConv {
 public:
  static Status make(const KernelInfo& info, DeformConv& out) {
    out.group_ = info.attributes.integer("group", 1), out.offset_group_ = info.attributes.integer("offset_group", 1);
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  // Inputs: X, W, offsets [n, offset groups * taps * 2, out…], bias, mask [n, offset groups * taps, out…].
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(1), &offsets = *context.input(2), *bias = context.input(3),
                 *mask = context.input(4);
    PY_ORT_ENSURE(x.rank() == 4 && w.rank() == 4 && group_ > 0 && offset_group_ > 0 &&
                      x.dims[1] == w.dims[1] * group_ && w.dims[0] % group_ == 0 && x.dims[1] % offset_group_ == 0,
                  "DeformConv got X of shape ", x.dims, " and W of shape ", w.dims, " for ", group_, " groups and ",
                  offset_group_, " groups of offsets");
    Image image;
    PY_ORT_TRY(Image::of(x, false, image));
    SpatialPlan plan;
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, {w.dims[2], w.dims[3]}, image.channels, plan));
    const Window& window = plan.window;
    const int64_t taps = window.taps(), pixels = element_count(plan.out), m = w.dims[0], channels = image.channels,
                  k = w.dims[1] * taps;
    PY_ORT_ENSURE(offsets.dims == (Dims{image.batch, offset_group_ * taps * 2, plan.out[0], plan.out[1]}),
                  "DeformConv's offsets of shape ", offsets.dims, " do not fit an output of ", plan.out);
    PY_ORT_ENSURE(!mask || mask->count() * 2 == offsets.count(), "DeformConv's mask of shape ", mask->dims,
                  " does not fit offsets of shape ", offsets.dims);
    PY_ORT_ENSURE(!bias || bias->count() == m, "the bias of shape ", bias->dims, " does not fit ", m,
                  " output channels");
    Tensor *y, columns;
    PY_ORT_TRY(context.output(0, x.dtype, Image::dims(false, image.batch, m, plan.out), y));
    PY_ORT_TRY(Tensor::make(DType::float32, {channels * taps, pixels}, columns));
    const int64_t in_offset_group = channels / offset_group_, per_group = m / group_;
    for (int64_t n = 0; n < image.batch; ++n) {
      for (int64_t og = 0; og < offset_group_; ++og) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t ky = tap / window.kernel[2], kx = tap % window.kernel[2],
                        plane = (n * offset_group_ + og) * taps + tap;
          const float *dy = offsets.data<float>() + plane * 2 * pixels, *dx = dy + pixels,
                      *share = mask ? mask->data<float>() + plane * pixels : nullptr;
          for (int64_t pixel = 0; pixel < pixels; ++pixel) {
            const int64_t row = pixel / window.out[2] * window.stride[1] - window.pad[1] + ky * window.dilation[1];
            const int64_t column = pixel % window.out[2] * window.stride[2] - window.pad[2] + kx * window.dilation[2];
            BilinearPoint point =
                BilinearPoint::with_zeros(static_cast<float>(row) + dy[pixel], static_cast<float>(column) + dx[pixel],
                                          window.in[1], window.in[2]);
            for (float& weight : point.weight) weight *= share ? share[pixel] : 1.0f;
            for (int64_t c = og * in_offset_group; c < (og + 1) * in_offset_group; ++c)
              columns.mutable_data<float>()[(c * taps + tap) * pixels + pixel] =
                  point.sample(x.data<float>() + (n * channels + c) * image.pixels());
          }
        }
      }
      for (int64_t g = 0; g < group_; ++g) {
        ProductEnd end;
        end.c = y->mutable_data<float>() + (n * m + g * per_group) * pixels, end.c_stride = pixels;
        PY_ORT_TRY(multiply(row_major(w.data<float>() + g * per_group * k, per_group, k),
                            row_major(columns.data<float>() + g * k * pixels, k, pixels), 1, end));
      }
      float* to = y->mutable_data<float>() + n * m * pixels;
      for (int64_t i = 0; bias && i < m * pixels; ++i) to[i] += bias->data<float>()[i / pixels];
    }
    return {};
  }

 private:
  SpatialAttributes spatial_;
  int64_t group_ = 1, offset_group_ = 1;
};

PY_ORT_KERNEL("", "DeformConv", "=float32,float16,bfloat16", WithHalf<DeformConv>);

}  // namespace
}  // namespace py_ort
