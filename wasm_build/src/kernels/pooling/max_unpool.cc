// MaxUnpool: puts elements back where MaxPool found them.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/spatial.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class MaxUnpool {
 public:
  static Status make(const KernelInfo& info, MaxUnpool& out) {
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &indices = *context.input(1);
    const Tensor* wanted = context.input(2);
    PY_ORT_ENSURE(
        x.dims == indices.dims && x.rank() >= 3 && static_cast<size_t>(x.rank()) == spatial_.kernel.size() + 2,
        "MaxUnpool got X of shape ", x.dims, ", indices of shape ", indices.dims, " and kernel_shape ",
        spatial_.kernel);
    std::vector<WindowAxis> axes;
    PY_ORT_TRY(slide_transposed(spatial_, Dims(x.dims.begin() + 2, x.dims.end()), spatial_.kernel, axes));
    Dims own{x.dims[0], x.dims[1]};  // the shape to which the indices refer
    for (const WindowAxis& axis : axes) own.push_back(axis.out);
    Dims dims = own;
    if (wanted) PY_ORT_TRY(read_integers(*wanted, dims));
    PY_ORT_ENSURE(dims.size() == own.size(), "output_shape ", dims, " does not fit X of shape ", x.dims);
    Tensor unpooled;
    PY_ORT_TRY(Tensor::make(x.dtype, own, unpooled));
    fill_zero(unpooled);
    const int64_t limit = unpooled.count();
    for (int64_t index : indices.values<int64_t>())
      PY_ORT_ENSURE(index >= 0 && index < limit, "MaxUnpool's index ", index, " is outside of the shape ", own);
    visit_width(x.dtype, [&]<class T>() {
      for (int64_t i = 0; i < x.count(); ++i)
        mutable_elements<T>(unpooled)[indices.data<int64_t>()[i]] = elements<T>(x)[i];
    });
    if (dims == own) {
      context.output(0, std::move(unpooled));
      return {};
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, dims, y));
    fill_zero(*y);
    Dims common;
    for (size_t i = 0; i < dims.size(); ++i) common.push_back(std::min(dims[i], own[i]));
    strided_copy(unpooled, {0, strides_of(own)}, *y, {0, strides_of(dims)}, common);
    return {};
  }

 private:
  SpatialAttributes spatial_;
};

PY_ORT_KERNEL("", "MaxUnpool", "float32,float16,bfloat16,float64;int64", MaxUnpool);

}  // namespace
}  // namespace py_ort
