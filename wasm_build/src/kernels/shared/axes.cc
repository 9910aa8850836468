#include "kernels/shared/axes.h"

#include <algorithm>

#include "kernels/shared/lanes.h"

namespace py_ort {

Status read_integers(const Tensor& tensor, std::vector<int64_t>& out) {
  if (tensor.dtype == DType::string_) return runtime_error("expected integers, got strings of shape ", tensor.dims);
  Tensor wide;
  PY_ORT_TRY(cast(tensor, DType::int64, wide));
  const auto values = wide.values<int64_t>();
  out.assign(values.begin(), values.end());
  return {};
}

Status read_integers(const Tensor* tensor, std::vector<int64_t>& out) {
  if (!tensor)
    return invalid_graph("an input that holds axes, sizes or indices is missing: older forms of an operator must be "
                         "brought to the newest one first");
  return read_integers(*tensor, out);
}

Status read_integer(const Tensor& tensor, std::string_view what, int64_t& out) {
  PY_ORT_ENSURE(tensor.count() == 1, what, " must have one element, but its shape is ", tensor.dims);
  std::vector<int64_t> values;
  PY_ORT_TRY(read_integers(tensor, values));
  out = values[0];
  return {};
}

Status normalize_axis(int64_t axis, int64_t rank, int64_t& out) {
  PY_ORT_ENSURE(axis >= -rank && axis < rank, "axis ", axis, " is out of range for a tensor of rank ", rank);
  out = axis < 0 ? axis + rank : axis;
  return {};
}

Status normalize_axes(std::vector<int64_t>& axes, int64_t rank) {
  for (int64_t& axis : axes) PY_ORT_TRY(normalize_axis(axis, rank, axis));
  return {};
}

Status distinct_axes(std::vector<int64_t>& axes, int64_t rank) {
  PY_ORT_TRY(normalize_axes(axes, rank));
  for (auto axis = axes.begin(); axis != axes.end(); ++axis)
    PY_ORT_ENSURE(std::find(axes.begin(), axis, *axis) == axis, "axes ", axes, " name an axis twice");
  return {};
}

Status normalize_indices(std::vector<int64_t>& indices, int64_t size, std::string_view what) {
  for (size_t i = 0; i < indices.size(); ++i) {
    PY_ORT_ENSURE(indices[i] >= -size && indices[i] < size, "index ", indices[i], " (element ", i, " of ", what,
                  ") is out of range for an axis of ", size);
    if (indices[i] < 0) indices[i] += size;
  }
  return {};
}

int64_t count_between(const Dims& dims, int64_t first, int64_t last) {
  int64_t count = 1;
  for (int64_t i = first; i < last; ++i) count *= dims[static_cast<size_t>(i)];
  return count;
}

}  // namespace py_ort
