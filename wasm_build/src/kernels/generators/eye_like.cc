// EyeLike.
#include <algorithm>

#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// One element of the given dtype.
Status make_scalar(double value, DType dtype, Tensor& out) {
  Tensor scalar;
  PY_ORT_TRY(Tensor::make(DType::float64, {}, scalar));
  *scalar.mutable_data<double>() = value;
  return cast(scalar, dtype, out);
}

class EyeLike {
 public:
  explicit EyeLike(const KernelInfo& info)
      : dtype_(static_cast<DType>(info.attributes.integer("dtype", 0))), k_(info.attributes.integer("k", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 2, "EyeLike needs a matrix, got shape ", in.dims);
    const DType dtype = dtype_ == DType::undefined ? in.dtype : dtype_;
    Tensor one;
    PY_ORT_TRY(make_scalar(1, dtype, one));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, dtype, in.dims, out));
    fill_zero(*out);
    for (int64_t row = std::max<int64_t>(0, -k_); row < in.dim(0) && row + k_ < in.dim(1); ++row)
      copy_elements(one, 0, *out, row * in.dim(1) + row + k_, 1);
    return {};
  }

 private:
  DType dtype_;
  int64_t k_;
};

PY_ORT_KERNEL("", "EyeLike", "~*", EyeLike);

}  // namespace
}  // namespace py_ort
