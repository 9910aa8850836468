// NonZero.
#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

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

PY_ORT_KERNEL("", "NonZero", "*", NonZero);

}  // namespace
}  // namespace py_ort
