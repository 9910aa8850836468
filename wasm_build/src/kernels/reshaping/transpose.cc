#include <algorithm>
#include <numeric>

#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class Transpose {
 public:
  explicit Transpose(const KernelInfo& info)
      : perm_(info.attributes.integers("perm")), given_(info.attributes.has("perm")) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    const size_t rank = in.dims.size();
    std::vector<int64_t> perm = perm_;
    if (!given_)
      for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
    std::vector<int64_t> sorted = perm, axes(rank);
    std::sort(sorted.begin(), sorted.end());
    std::iota(axes.begin(), axes.end(), 0);
    PY_ORT_ENSURE(sorted == axes, "Transpose by ", perm, " is no permutation of the axes of shape ", in.dims);
    const Dims steps = strides_of(in.dims);
    Dims dims(rank);
    StridedView view{0, Dims(rank)};
    int64_t last = -1;
    bool in_order = true;  // axes of size 1 may be anywhere: they move no element
    for (size_t i = 0; i < rank; ++i) {
      dims[i] = in.dims[perm[i]];
      view.strides[i] = steps[perm[i]];
      if (dims[i] == 1) continue;
      in_order &= perm[i] > last;
      last = perm[i];
    }
    if (in_order) {
      context.output(0, in.reshaped(std::move(dims)));
      return {};
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, dims, out));
    strided_copy(in, std::move(view), *out, {0, strides_of(dims)}, dims);
    return {};
  }

 private:
  std::vector<int64_t> perm_;
  bool given_;
};

PY_ORT_KERNEL("", "Transpose", "*", OnBytes<Transpose>);

}  // namespace
}  // namespace py_ort
