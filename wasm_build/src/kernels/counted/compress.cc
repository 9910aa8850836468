// Compress.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class Compress {
 public:
  explicit Compress(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", 0)), flat_(!info.attributes.has("axis")) {}
  Status operator()(KernelContext& context) const {
    Tensor in = *context.input(0);
    if (flat_) in.dims = {in.count()};
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    const auto condition = context.input(1)->values<uint8_t>();
    std::vector<OffsetMap> maps = whole_axes(in.dims);
    OffsetMap chosen;
    // As natively, conditions past the end of the axis are ignored.
    for (size_t i = 0; i < std::min(condition.size(), maps[axis].size()); ++i)
      if (condition[i]) chosen.push_back(maps[axis][i]);
    Dims dims = in.dims;
    dims[axis] = static_cast<int64_t>(chosen.size());
    maps[axis] = std::move(chosen);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    mapped_copy(in, maps, nullptr, *out);
    return {};
  }

 private:
  int64_t axis_;
  bool flat_;
};

PY_ORT_KERNEL("", "Compress", "*;bool", Compress);

}  // namespace
}  // namespace py_ort
