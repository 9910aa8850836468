// Trilu.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/elements.h"

namespace py_ort {
namespace {

class Trilu {
 public:
  explicit Trilu(const KernelInfo& info) : upper_(info.attributes.integer("upper", 1) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() >= 2, "Trilu needs matrices, got shape ", in.dims);
    int64_t k = 0;
    if (const Tensor* given = context.input(1)) PY_ORT_TRY(read_integer(*given, "Trilu's k", k));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, in.dims, out));
    fill_zero(*out);
    const int64_t rows = in.dim(-2), columns = in.dim(-1), matrices = count_between(in.dims, 0, in.rank() - 2);
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t row = 0; row < rows; ++row) {
        // Column `row + k` is on the diagonal, and belongs to both halves. (k may be huge: clamp before adding.)
        const int64_t diagonal = std::clamp<int64_t>(row + std::clamp<int64_t>(k, -rows - columns, rows + columns),
                                                     upper_ ? 0 : -1, upper_ ? columns : columns - 1);
        const int64_t first = upper_ ? diagonal : 0, last = upper_ ? columns : diagonal + 1,
                      at = (m * rows + row) * columns + first;
        if (last > first) copy_elements(in, at, *out, at, last - first);
      }
    return {};
  }

 private:
  bool upper_;
};

PY_ORT_KERNEL("", "Trilu", "*;int64", Trilu);

}  // namespace
}  // namespace py_ort
