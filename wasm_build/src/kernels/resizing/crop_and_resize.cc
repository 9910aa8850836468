// com.microsoft's CropAndResize: parts of images, resized to a common size.
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class CropAndResize {
 public:
  explicit CropAndResize(const KernelInfo& info)
      : outside_(info.attributes.number("extrapolation_value", 0)),
        nearest_(info.attributes.text("mode", "bilinear") == "nearest") {}

  // Inputs: X [N, C, H, W], regions [count, 4] (y1, x1, y2, x2; the image's corners are 0 and 1), the index of each
  // region's image, the size.
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &regions = *context.input(1);
    std::vector<int64_t> images, size;
    PY_ORT_TRY(read_integers(*context.input(2), images));
    PY_ORT_TRY(read_integers(*context.input(3), size));
    PY_ORT_ENSURE(x.rank() == 4 && regions.rank() == 2 && regions.dims[1] == 4 &&
                      static_cast<int64_t>(images.size()) == regions.dims[0],
                  "CropAndResize got an image of shape ", x.dims, ", regions of shape ", regions.dims, " and ",
                  images.size(), " batch indices");
    PY_ORT_ENSURE(size.size() == 2 && size[0] > 0 && size[1] > 0,
                  "CropAndResize's crop_size must be two numbers above 0");
    PY_ORT_TRY(normalize_indices(images, x.dims[0], "batch_indices"));
    const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3];
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, {regions.dims[0], channels, size[0], size[1]}, y));
    float* to = y->mutable_data<float>();
    for (int64_t r = 0; r < regions.dims[0]; ++r) {
      const float* region = regions.data<float>() + r * 4;
      const float* image = x.data<float>() + images[static_cast<size_t>(r)] * channels * height * width;
      for (int64_t i = 0; i < size[0]; ++i)
        for (int64_t j = 0; j < size[1]; ++j) {
          const float at_y = place(region[0], region[2], i, size[0], height),
                      at_x = place(region[1], region[3], j, size[1], width);
          const bool inside =
              at_y >= 0 && at_y <= static_cast<float>(height - 1) && at_x >= 0 && at_x <= static_cast<float>(width - 1);
          for (int64_t c = 0; c < channels; ++c)
            to[(c * size[0] + i) * size[1] + j] =
                inside ? sample(image + c * height * width, width, at_y, at_x) : outside_;
        }
      to += channels * size[0] * size[1];
    }
    return {};
  }

 private:
  // The corners of the region and of the result coincide; a result of size one is the region's middle.
  static float place(float from, float to, int64_t i, int64_t count, int64_t length) {
    const auto last = static_cast<float>(length - 1);
    if (count == 1) return 0.5f * (from + to) * last;
    return from * last + static_cast<float>(i) * ((to - from) * last / static_cast<float>(count - 1));
  }
  float sample(const float* image, int64_t width, float y, float x) const {
    if (nearest_) return image[static_cast<int64_t>(std::round(y)) * width + static_cast<int64_t>(std::round(x))];
    const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
    const auto bottom = static_cast<int64_t>(std::ceil(y)), right = static_cast<int64_t>(std::ceil(x));
    const float down = y - static_cast<float>(top), across = x - static_cast<float>(left);
    const auto row = [&](int64_t i) {
      return image[i * width + left] + (image[i * width + right] - image[i * width + left]) * across;
    };
    const float above = row(top);
    return above + (row(bottom) - above) * down;
  }

  float outside_;
  bool nearest_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "CropAndResize", "float32,float16;float32,float16;int32;int32",
              WithHalf<CropAndResize>);

}  // namespace
}  // namespace py_ort
