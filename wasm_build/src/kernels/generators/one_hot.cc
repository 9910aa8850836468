// OneHot.
#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/elements.h"

namespace py_ort {
namespace {

class OneHot {
 public:
  explicit OneHot(const KernelInfo& info) : axis_(info.attributes.integer("axis", -1)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &indices = *context.input(0), &values = *context.input(2);
    int64_t depth = 0, axis = 0;
    PY_ORT_TRY(read_integer(*context.input(1), "OneHot's depth", depth));
    PY_ORT_ENSURE(depth >= 0, "OneHot's depth is ", depth);
    PY_ORT_ENSURE(values.count() == 2, "OneHot's values must be [off, on], but their shape is ", values.dims);
    PY_ORT_TRY(normalize_axis(axis_, indices.rank() + 1, axis));
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    Dims dims = indices.dims;
    dims.insert(dims.begin() + axis, depth);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, values.dtype, std::move(dims), out));
    fill_elements(*out, values, 0);
    const int64_t inner = count_between(indices.dims, axis, indices.rank());
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t hot = at[i] < 0 ? at[i] + depth : at[i];
      const auto outer = static_cast<int64_t>(i) / inner, rest = static_cast<int64_t>(i) % inner;
      if (hot >= 0 && hot < depth) copy_elements(values, 1, *out, (outer * depth + hot) * inner + rest, 1);
    }
    return {};
  }

 private:
  int64_t axis_;
};

PY_ORT_KERNEL("", "OneHot", PY_ORT_NUMBERS ";" PY_ORT_NUMBERS ";*", OneHot);

}  // namespace
}  // namespace py_ort
