// AffineGrid: the places, from -1 to 1, at which GridSample samples for an affine transform of the image.
#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class AffineGrid {
 public:
  explicit AffineGrid(const KernelInfo& info) : align_corners_(info.attributes.integer("align_corners", 0) != 0) {}

  Status operator()(KernelContext& context) const {
    const Tensor& theta = *context.input(0);
    std::vector<int64_t> size;
    PY_ORT_TRY(read_integers(*context.input(1), size));
    PY_ORT_ENSURE(size.size() == 4 || size.size() == 5,
                  "AffineGrid makes grids for images with two or three spatial axes, not of shape ", size);
    const Dims spatial(size.begin() + 2, size.end());
    const auto rank = static_cast<int64_t>(spatial.size());
    PY_ORT_ENSURE(theta.dims == (Dims{size[0], rank, rank + 1}), "theta of shape ", theta.dims,
                  " does not fit an image of shape ", size);
    Dims dims{size[0]};
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    dims.push_back(rank);
    Tensor* grid;
    PY_ORT_TRY(context.output(0, theta.dtype, dims, grid));
    if (theta.dtype == DType::float64) run<double>(theta, spatial, *grid);
    else run<float>(theta, spatial, *grid);
    return {};
  }

 private:
  template <class T>
  void run(const Tensor& theta, const Dims& spatial, Tensor& grid) const {
    const size_t rank = spatial.size();
    const int64_t places = element_count(spatial);
    T* to = grid.mutable_data<T>();
    for (int64_t n = 0; n < theta.dims[0]; ++n) {
      const T* matrix = theta.data<T>() + n * static_cast<int64_t>(rank * (rank + 1));
      for (int64_t place = 0; place < places; ++place) {
        T at[4] = {0, 0, 0, 1};  // last axis first, then 1
        int64_t rest = place;
        for (size_t i = 0; i < rank; ++i) {
          const int64_t length = spatial[rank - 1 - i];
          const auto index = static_cast<T>(rest % length);
          rest /= length;
          // In an axis of one place, the corner is the axis' end natively; in ONNX's reference it is the start.
          at[i] = align_corners_ ? (length > 1 ? -1 + 2 * index / static_cast<T>(length - 1) : T{1})
                                 : (2 * index + 1) / static_cast<T>(length) - 1;
        }
        at[rank] = 1;
        for (size_t row = 0; row < rank; ++row) {
          T sum = 0;
          for (size_t i = 0; i <= rank; ++i) sum += matrix[row * (rank + 1) + i] * at[i];
          *to++ = sum;
        }
      }
    }
  }

  bool align_corners_;
};

PY_ORT_KERNEL("", "AffineGrid", "float32,float16,bfloat16,float64;int64", WithHalf<AffineGrid>);

}  // namespace
}  // namespace py_ort
