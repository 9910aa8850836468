// Shape, Size: only dtype and dims of the input are read.
#include <algorithm>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

class Shape {
 public:
  explicit Shape(const KernelInfo& info)
      : start_(info.attributes.integer("start", 0)), end_(info.attributes.integer("end", INT64_MAX)) {}
  Status operator()(KernelContext& context) const {
    const Dims& dims = context.input(0)->dims;
    const auto rank = static_cast<int64_t>(dims.size());
    const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
    const int64_t start = clamp(start_), end = std::max(start, clamp(end_));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, {end - start}, out));
    std::copy(dims.begin() + start, dims.begin() + end, out->mutable_data<int64_t>());
    return {};
  }

 private:
  int64_t start_, end_;
};

struct Size {
  Status operator()(KernelContext& context) const {
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, {}, out));
    *out->mutable_data<int64_t>() = context.input(0)->count();
    return {};
  }
};

PY_ORT_KERNEL("", "Shape", "~*", Shape);
PY_ORT_KERNEL("", "Size", "~*", Size);

}  // namespace
}  // namespace py_ort
