// Split.
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class Split {
 public:
  explicit Split(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    const int64_t size = in.dim(axis);
    const auto parts = static_cast<int64_t>(context.output_count());
    std::vector<int64_t> split;
    if (const Tensor* given = context.input(1)) {
      PY_ORT_TRY(read_integers(*given, split));
    } else {
      const int64_t each = (size + parts - 1) / parts;  // the last one may be smaller
      for (int64_t i = 0; i < parts; ++i) split.push_back(std::min(each, std::max<int64_t>(size - i * each, 0)));
    }
    const int64_t sum = std::accumulate(split.begin(), split.end(), int64_t{0});
    PY_ORT_ENSURE(static_cast<int64_t>(split.size()) == parts && sum == size, "Split of axis ", axis, " of shape ",
                  in.dims, " into ", split, " for ", parts, " outputs");
    const int64_t outer = count_between(in.dims, 0, axis), inner = count_between(in.dims, axis + 1, in.rank());
    int64_t at = 0;
    for (size_t i = 0; i < split.size(); ++i) {
      Dims dims = in.dims;
      dims[axis] = split[i];
      const int64_t length = split[i] * inner;
      if (context.wants(i)) {
        Tensor* out = nullptr;
        PY_ORT_TRY(context.output(i, in.dtype, std::move(dims), out));
        strided_copy(in, {at, {size * inner, 1}}, *out, {0, {length, 1}}, {outer, length});
      }
      at += length;
    }
    return {};
  }

 private:
  int64_t axis_;
};

PY_ORT_KERNEL("", "Split", "*;int64", OnBytes<Split>);

}  // namespace
}  // namespace py_ort
