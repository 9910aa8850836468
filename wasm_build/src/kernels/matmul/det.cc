// Det, com.microsoft Inverse: square matrices by Gaussian elimination, in doubles.
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// Eliminates below (and, for an inverse, above) the diagonal, with the largest pivots, and applies the same steps to
// `right`. Returns the determinant.
double eliminate(double* a, double* right, int64_t n) {
  double determinant = 1;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < n; ++row)
      if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column])) pivot = row;
    if (a[pivot * n + column] == 0) return 0;
    if (pivot != column) {
      determinant = -determinant;
      for (int64_t k = 0; k < n; ++k) {
        std::swap(a[pivot * n + k], a[column * n + k]);
        if (right) std::swap(right[pivot * n + k], right[column * n + k]);
      }
    }
    determinant *= a[column * n + column];
    for (int64_t row = right ? 0 : column + 1; row < n; ++row) {
      const double factor = a[row * n + column] / a[column * n + column];
      if (row == column || factor == 0) continue;
      for (int64_t k = column; k < n; ++k) a[row * n + k] -= factor * a[column * n + k];
      if (right)
        for (int64_t k = 0; k < n; ++k) right[row * n + k] -= factor * right[column * n + k];
    }
  }
  return determinant;
}

class Elimination {
 public:
  explicit Elimination(const KernelInfo& info) : inverse_(info.op_type == "Inverse") {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() >= 2 && in.dim(-1) == in.dim(-2), inverse_ ? "Inverse" : "Det",
                  " needs square matrices, got shape ", in.dims);
    const int64_t n = in.dim(-1), matrices = count_between(in.dims, 0, in.rank() - 2);
    Tensor work, values, result;
    PY_ORT_TRY(cast(in, DType::float64, work));
    if (in.dtype == DType::float64) {  // the elimination is in place
      PY_ORT_TRY(Tensor::make(DType::float64, in.dims, work));
      std::copy_n(in.data<double>(), in.count(), work.mutable_data<double>());
    }
    PY_ORT_TRY(Tensor::make(DType::float64, inverse_ ? in.dims : Dims(in.dims.begin(), in.dims.end() - 2), values));
    for (int64_t m = 0; m < matrices; ++m) {
      double* a = work.mutable_data<double>() + m * n * n;
      double* out = values.mutable_data<double>() + (inverse_ ? m * n * n : m);
      if (!inverse_) {
        *out = eliminate(a, nullptr, n);
        continue;
      }
      for (int64_t i = 0; i < n * n; ++i) out[i] = i % (n + 1) == 0;
      PY_ORT_ENSURE(eliminate(a, out, n) != 0, "Inverse: matrix ", m, " of ", in.dims, " is singular");
      for (int64_t i = 0; i < n * n; ++i) out[i] /= a[i / n * (n + 1)];
    }
    PY_ORT_TRY(cast(values, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  bool inverse_;
};

PY_ORT_KERNEL("", "Det", PY_ORT_FLOATS, Elimination);
PY_ORT_KERNEL(kMicrosoftDomain, "Inverse", PY_ORT_FLOATS, Elimination);

}  // namespace
}  // namespace py_ort
