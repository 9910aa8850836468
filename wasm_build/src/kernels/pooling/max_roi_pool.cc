// MaxRoiPool: the maxima of cells of image regions.
#include <algorithm>
#include <cmath>

#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class MaxRoiPool {
 public:
  static Status make(const KernelInfo& info, MaxRoiPool& out) {
    out.shape_ = info.attributes.integers("pooled_shape");
    out.scale_ = info.attributes.number("spatial_scale", 1);
    return out.shape_.size() == 2 ? Status{}
                                  : invalid_graph("MaxRoiPool's pooled_shape must have two numbers, not ", out.shape_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &rois = *context.input(1);
    PY_ORT_ENSURE(x.rank() == 4 && rois.rank() == 2 && rois.dims[1] == 5, "MaxRoiPool got an image of shape ", x.dims,
                  " and regions of shape ", rois.dims);
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, {rois.dims[0], x.dims[1], shape_[0], shape_[1]}, y));
    float* to = y->mutable_data<float>();
    const int64_t height = x.dims[2], width = x.dims[3];
    for (int64_t r = 0; r < rois.dims[0]; ++r) {
      const float* roi = rois.data<float>() + r * 5;
      const auto image = static_cast<int64_t>(roi[0]);
      PY_ORT_ENSURE(image >= 0 && image < x.dims[0], "region ", r, " is of image ", image, " of ", x.dims[0]);
      const auto place = [&](int i) { return static_cast<int64_t>(std::round(roi[i] * scale_)); };
      const int64_t left = place(1), top = place(2), roi_width = std::max<int64_t>(place(3) - left + 1, 1),
                    roi_height = std::max<int64_t>(place(4) - top + 1, 1);
      for (int64_t c = 0; c < x.dims[1]; ++c) {
        const float* from = x.data<float>() + (image * x.dims[1] + c) * height * width;
        for (int64_t i = 0; i < shape_[0]; ++i) {
          int64_t y0, y1;
          cell(i, roi_height, shape_[0], top, height, y0, y1);
          for (int64_t j = 0; j < shape_[1]; ++j) {
            int64_t x0, x1;
            cell(j, roi_width, shape_[1], left, width, x0, x1);
            float best = y1 > y0 && x1 > x0 ? from[y0 * width + x0] : 0.0f;
            for (int64_t row = y0; row < y1; ++row)
              for (int64_t column = x0; column < x1; ++column) best = std::max(best, from[row * width + column]);
            *to++ = best;
          }
        }
      }
    }
    return {};
  }

 private:
  static void cell(int64_t i, int64_t size, int64_t cells, int64_t first, int64_t limit, int64_t& begin, int64_t& end) {
    const float step = static_cast<float>(size) / static_cast<float>(cells);
    begin = std::clamp<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * step)) + first, 0, limit);
    end = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(static_cast<float>(i + 1) * step)) + first, 0, limit);
  }

  Dims shape_;
  float scale_ = 1;
};

PY_ORT_KERNEL("", "MaxRoiPool", "=float32,float16,bfloat16", WithHalf<MaxRoiPool>);

}  // namespace
}  // namespace py_ort
