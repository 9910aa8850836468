#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"
#include "kernels/sorting/order.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// True if row `a` sorts before row `b`; rows have `length` elements.
using Before = bool (*)(const void* rows, int64_t a, int64_t b, int64_t length);
template <class T>
bool row_before(const void* rows, int64_t a, int64_t b, int64_t length) {
  const T *x = static_cast<const T*>(rows) + a * length, *y = static_cast<const T*>(rows) + b * length;
  return std::lexicographical_compare(x, x + length, y, y + length, &comes_before<T>);
}

// Groups equal rows: row numbers in ascending order of the rows' contents.
std::vector<std::vector<int64_t>> group_rows(const void* rows, Before before, int64_t count, int64_t length) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return before(rows, a, b, length); });
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t row : order) {
    if (groups.empty() || before(rows, groups.back().front(), row, length)) groups.emplace_back();
    groups.back().push_back(row);
  }
  return groups;
}

class Unique {
 public:
  explicit Unique(const KernelInfo& info)
      : flat_(!info.attributes.has("axis")), axis_(info.attributes.integer("axis", 0)),
        sorted_(info.attributes.integer("sorted", 1) != 0) {}
  Status operator()(KernelContext& context) const {
    Tensor in = *context.input(0);
    if (flat_) in.dims = {in.count()};
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    // Rows along the axis, each contiguous.
    const int64_t count = in.dim(axis), outer = count_between(in.dims, 0, axis),
                  inner = count_between(in.dims, axis + 1, in.rank()), length = outer * inner;
    Tensor rows;
    PY_ORT_TRY(Tensor::make(in.dtype, {count, outer, inner}, rows));
    strided_copy(in, {0, {inner, count * inner, 1}}, rows, {0, strides_of(rows.dims)}, rows.dims);
    std::vector<std::vector<int64_t>> groups;
    if (in.dtype == DType::string_) {
      groups = group_rows(rows.strings(), &row_before<std::string>, count, length);
    } else {
      Tensor wide;
      PY_ORT_TRY(widened(rows, wide));
      visit_lane(lane_of(in.dtype),
                 [&]<class T>() { groups = group_rows(wide.data<T>(), &row_before<T>, count, length); });
    }
    if (!sorted_)
      std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });

    const auto found = static_cast<int64_t>(groups.size());
    Dims dims = in.dims;
    dims[axis] = found;
    Tensor *out = nullptr, *first = nullptr, *inverse = nullptr, *counts = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    PY_ORT_TRY(context.output(1, DType::int64, {found}, first));
    PY_ORT_TRY(context.output(2, DType::int64, {count}, inverse));
    PY_ORT_TRY(context.output(3, DType::int64, {found}, counts));
    for (int64_t g = 0; g < found; ++g) {
      const std::vector<int64_t>& group = groups[g];
      for (int64_t o = 0; o < outer; ++o)
        copy_elements(rows, group.front() * length + o * inner, *out, (o * found + g) * inner, inner);
      first->mutable_data<int64_t>()[g] = group.front();
      counts->mutable_data<int64_t>()[g] = static_cast<int64_t>(group.size());
      for (const int64_t row : group) inverse->mutable_data<int64_t>()[row] = g;
    }
    return {};
  }

 private:
  bool flat_;
  int64_t axis_;
  bool sorted_;
};

PY_ORT_KERNEL("", "Unique", PY_ORT_NUMBERS ",bool,string", Unique);

}  // namespace
}  // namespace py_ort
