// RoiAlign: regions of an image, each sampled on a grid and pooled.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/bilinear.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class RoiAlign {
 public:
  explicit RoiAlign(const KernelInfo& info) {
    const Attributes& a = info.attributes;
    maximum_ = a.text("mode", "avg") == "max";
    height_ = a.integer("output_height", 1), width_ = a.integer("output_width", 1);
    sampling_ratio_ = a.integer("sampling_ratio", 0);
    scale_ = a.number("spatial_scale", 1);
    half_pixel_ = a.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &rois = *context.input(1);
    std::vector<int64_t> images;
    PY_ORT_TRY(read_integers(*context.input(2), images));
    PY_ORT_ENSURE(
        x.rank() == 4 && rois.rank() == 2 && rois.dims[1] == 4 && static_cast<int64_t>(images.size()) == rois.dims[0],
        "RoiAlign got an image of shape ", x.dims, ", regions of shape ", rois.dims, " and ", images.size(),
        " batch indices");
    PY_ORT_TRY(normalize_indices(images, x.dims[0], "batch_indices"));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, {rois.dims[0], x.dims[1], height_, width_}, y));
    const int64_t channels = x.dims[1], pixels = x.dims[2] * x.dims[3];
    std::vector<BilinearPoint> points;
    float* to = y->mutable_data<float>();
    if (pixels == 0) {  // the whole region is outside
      std::fill_n(to, y->count(), 0.0f);
      return {};
    }
    for (int64_t r = 0; r < rois.dims[0]; ++r) {
      const int64_t in_cell = make_points(rois.data<float>() + r * 4, x.dims[2], x.dims[3], points);
      for (int64_t c = 0; c < channels; ++c) {
        const float* image = x.data<float>() + (images[static_cast<size_t>(r)] * channels + c) * pixels;
        for (int64_t cell = 0; cell < height_ * width_; ++cell)
          *to++ = pool(image, points.data() + cell * in_cell, in_cell);
      }
    }
    return {};
  }

 private:
  // Makes the sampling points of a region, cell after cell; returns the number per cell.
  int64_t make_points(const float* roi, int64_t image_height, int64_t image_width,
                      std::vector<BilinearPoint>& points) const {
    const float offset = half_pixel_ ? 0.5f : 0.0f;
    const float left = roi[0] * scale_ - offset, top = roi[1] * scale_ - offset;
    float width = roi[2] * scale_ - offset - left, height = roi[3] * scale_ - offset - top;
    if (!half_pixel_) width = std::max(width, 1.0f), height = std::max(height, 1.0f);
    const float cell_height = height / static_cast<float>(height_), cell_width = width / static_cast<float>(width_);
    const auto grid = [&](float cell) {
      return sampling_ratio_ > 0 ? sampling_ratio_ : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(cell)));
    };
    const int64_t rows = grid(cell_height), columns = grid(cell_width);
    points.clear();
    for (int64_t i = 0; i < height_; ++i)
      for (int64_t j = 0; j < width_; ++j)
        for (int64_t iy = 0; iy < rows; ++iy)
          for (int64_t ix = 0; ix < columns; ++ix) {
            const float y = top + static_cast<float>(i) * cell_height +
                            (static_cast<float>(iy) + 0.5f) * cell_height / static_cast<float>(rows);
            const float x = left + static_cast<float>(j) * cell_width +
                            (static_cast<float>(ix) + 0.5f) * cell_width / static_cast<float>(columns);
            points.push_back(BilinearPoint::with_border(y, x, image_height, image_width));
          }
    return rows * columns;
  }

  float pool(const float* image, const BilinearPoint* points, int64_t count) const {
    float result = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!maximum_) {
        result += points[i].sample(image);
        continue;
      }
      // The maximum of the weighted pixels, not of their sums.
      float best = image[points[i].index[0]] * points[i].weight[0];
      for (int k = 1; k < 4; ++k) best = std::max(best, image[points[i].index[k]] * points[i].weight[k]);
      result = i == 0 ? best : std::max(result, best);
    }
    return maximum_ ? result : result / static_cast<float>(std::max<int64_t>(1, count));
  }

  bool maximum_, half_pixel_;
  int64_t height_, width_, sampling_ratio_;
  float scale_;
};

PY_ORT_KERNEL("", "RoiAlign", "float32,float16,bfloat16;float32,float16,bfloat16;int64,int32", WithHalf<RoiAlign>);

}  // namespace
}  // namespace py_ort
