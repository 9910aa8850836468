// com.microsoft's MaxpoolWithMask: in each row of a window, uses the pixels before the first one that the mask marks 0.
#include <algorithm>
#include <limits>

#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

class MaxpoolWithMask {
 public:
  static Status make(const KernelInfo& info, MaxpoolWithMask& out) {
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &mask = *context.input(1);
    Image image, masks;
    PY_ORT_TRY(Image::of(x, false, image));
    PY_ORT_TRY(Image::of(mask, false, masks));
    const int64_t planes = masks.batch * masks.channels, pixels = image.pixels();
    PY_ORT_ENSURE(masks.spatial == image.spatial && (planes > 0 || x.count() == 0),
                  "MaxpoolWithMask got an image of shape ", x.dims, " and a mask of shape ", mask.dims);
    SpatialPlan plan;
    PY_ORT_TRY(SpatialPlan::make(spatial_, image.batch, image.spatial, spatial_.kernel, image.channels, plan, true));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, Image::dims(false, image.batch, image.channels, plan.out), y));
    float* to = y->mutable_data<float>();
    for (int64_t c = 0; c < image.batch * image.channels; ++c) {
      // onnxruntime uses this element as a plane's first one; with one plane it is.
      const int32_t* seen = mask.data<int32_t>() + c * pixels % planes;
      to = pool(plan, x.data<float>() + c * pixels, seen, to);
    }
    return {};
  }

 private:
  static float* pool(const SpatialPlan& plan, const float* x, const int32_t* seen, float* to) {
    const Window& w = plan.window;
    const auto range = [&](int axis, int32_t at) {
      const int32_t begin = at * w.stride[axis] - w.pad[axis];
      return std::pair(std::max(begin, 0), std::min(begin + w.kernel[axis], w.in[axis]));
    };
    for (int32_t i = 0; i < w.out[0]; ++i)
      for (int32_t j = 0; j < w.out[1]; ++j)
        for (int32_t k = 0; k < w.out[2]; ++k) {
          const auto [top, bottom] = range(0, i);
          const auto [front, back] = range(1, j);
          const auto [left, right] = range(2, k);
          float most = std::numeric_limits<float>::lowest();
          for (int32_t p = top; p < bottom; ++p)
            for (int32_t q = front; q < back; ++q)
              for (int32_t r = left; r < right; ++r) {
                const int64_t at = (int64_t{p} * w.in[1] + q) * w.in[2] + r;
                if (seen[at] == 0 && (at > 0 || plan.rank == 1)) break;  // an image's first pixel always counts
                most = std::max(most, x[at]);
              }
          *to++ = most;
        }
    return to;
  }

  SpatialAttributes spatial_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "MaxpoolWithMask", "float32;int32", MaxpoolWithMask);

}  // namespace
}  // namespace py_ort
