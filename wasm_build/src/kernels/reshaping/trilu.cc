// Trilu, NonZero.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"

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

struct NonZero {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> found;
    if (in.dtype == DType::string_) {
      for (int64_t i = 0; i < in.count(); ++i)
        if (!in.strings()[i].empty()) found.push_back(i);
    } else {
      Tensor test;
      PY_ORT_TRY(cast(in, DType::bool_, test));
      for (int64_t i = 0; i < in.count(); ++i)
        if (test.data<uint8_t>()[i]) found.push_back(i);
    }
    const auto count = static_cast<int64_t>(found.size());
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, {in.rank(), count}, out));
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = found[i];
      for (int64_t d = in.rank(); d-- > 0; rest /= in.dim(d))
        out->mutable_data<int64_t>()[d * count + i] = rest % in.dim(d);
    }
    return {};
  }
};

PY_ORT_KERNEL("", "Trilu", "*;int64", Trilu);
PY_ORT_KERNEL("", "NonZero", "*", NonZero);

}  // namespace
}  // namespace py_ort
