#include "kernels/shared/columns.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {

ColumnAttributes ColumnAttributes::of(const Attributes& attributes) {
  return {attributes.integers(dialect::kXColumns), attributes.integers(dialect::kResidualColumns),
          attributes.integers(dialect::kYColumns), attributes.integer(dialect::kInto, -1)};
}

Status seen_columns(const Tensor& wide, const Dims& columns, Tensor& seen, Columns& at) {
  seen = wide;
  at = {0, wide.rank() > 0 ? wide.dim(-1) : 1};
  if (columns.empty()) return {};
  PY_ORT_ENSURE(columns.size() == 2 && columns[0] >= 0 && columns[1] >= 0 && columns[0] + columns[1] <= at.pitch,
                "columns ", columns, " of shape ", wide.dims);
  at.first = columns[0];
  seen.dims.back() = columns[1];
  return {};
}

Status column_output(KernelContext& context, DType dtype, const Dims& dims, const ColumnAttributes& columns, Tensor& y,
                     Columns& at, std::initializer_list<size_t> over) {
  Tensor* made = nullptr;
  if (columns.y.empty()) {
    PY_ORT_TRY(context.output(0, dtype, dims, made, over));
    y = *made;
    at = {0, dims.empty() ? 1 : dims.back()};
    return {};
  }
  PY_ORT_ENSURE(columns.y.size() == 2 && columns.y[0] >= 0 && columns.y[0] + dims.back() <= columns.y[1], dims.back(),
                " columns do not fit into ", columns.y);
  Dims wide = dims;
  wide.back() = columns.y[1];
  at = {columns.y[0], columns.y[1]};
  if (columns.into < 0) {
    PY_ORT_TRY(context.output(0, dtype, wide, made));
    y = *made;
    return {};
  }
  const Tensor* into = context.input(static_cast<size_t>(columns.into));
  PY_ORT_ENSURE(into && into->dtype == dtype && into->dims == wide, "columns ", columns.y, " of shape ", wide);
  y = *into;
  context.output(0, *into);
  return {};
}

}  // namespace py_ort
