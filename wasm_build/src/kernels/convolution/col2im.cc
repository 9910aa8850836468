// Col2Im: adds up blocks, one column each, into the image from which they were cut.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

class Col2Im {
 public:
  static Status make(const KernelInfo& info, Col2Im& out) {
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    std::vector<int64_t> image, block;
    PY_ORT_TRY(read_integers(*context.input(1), image));
    PY_ORT_TRY(read_integers(*context.input(2), block));
    std::vector<WindowAxis> axes;
    PY_ORT_TRY(slide(spatial_, image, block, axes));
    int64_t places = 1;
    for (const WindowAxis& axis : axes) places *= axis.out;
    const int64_t taps = element_count(block);
    PY_ORT_ENSURE(x.rank() == 3 && x.dims[1] % taps == 0 && x.dims[2] == places, "Col2Im's X of shape ", x.dims,
                  " does not fit an image of ", image, " and blocks of ", block);
    const int64_t channels = x.dims[1] / taps, pixels = element_count(image), columns = x.dims[2];
    Dims dims{x.dims[0], channels};
    dims.insert(dims.end(), image.begin(), image.end());
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, dims, y));
    // The place of element (tap, place) in the image; -1: outside.
    std::vector<int64_t> target(static_cast<size_t>(taps * columns));
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t column = 0; column < columns; ++column) {
        int64_t at = 0, step = 1, tap_rest = tap, column_rest = column;
        for (size_t i = axes.size(); i-- > 0;) {
          const WindowAxis& axis = axes[i];
          const int64_t index =
              column_rest % axis.out * axis.stride - axis.pad_begin + tap_rest % axis.kernel * axis.dilation;
          at = at < 0 || index < 0 || index >= axis.in ? -1 : at + index * step;
          step *= axis.in, tap_rest /= axis.kernel, column_rest /= axis.out;
        }
        target[static_cast<size_t>(tap * columns + column)] = at;
      }
    }
    const auto add = [&](auto zero) {
      using T = decltype(zero);
      const T* from = x.data<T>();
      T* to = y->mutable_data<T>();
      std::fill_n(to, y->count(), zero);
      for (int64_t row = 0; row < x.dims[0] * channels; ++row, to += pixels)
        for (int64_t place : target) {
          if (place >= 0) to[place] += *from;
          ++from;
        }
    };
    if (x.dtype == DType::float64) add(0.0);
    else add(0.0f);
    return {};
  }

 private:
  SpatialAttributes spatial_;
};

PY_ORT_KERNEL("", "Col2Im", "float32,float16,bfloat16,float64;int64", WithHalf<Col2Im>);

}  // namespace
}  // namespace py_ort
