// Expand, Tile.
#include "kernels/shared/axes.h"
#include "kernels/shared/broadcast.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

struct Expand {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Dims shape, dims;
    PY_ORT_TRY(read_integers(context.input(1), shape));
    PY_ORT_TRY(broadcast_dims(in.dims, shape, dims));
    if (dims == in.dims) {
      context.output(0, in);
      return {};
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, dims, out));
    const Dims steps = strides_of(in.dims);
    StridedView view{0, Dims(dims.size())};
    const size_t added = dims.size() - in.dims.size();
    for (size_t i = 0; i < in.dims.size(); ++i) view.strides[added + i] = in.dims[i] == 1 ? 0 : steps[i];
    strided_copy(in, std::move(view), *out, {0, strides_of(dims)}, dims);
    return {};
  }
};

struct Tile {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> repeats;
    PY_ORT_TRY(read_integers(context.input(1), repeats));
    PY_ORT_ENSURE(repeats.size() == in.dims.size(), "Tile: repeats ", repeats,
                  " do not have one entry per axis of shape ", in.dims);
    // Each axis becomes two: a repeating one with step 0 in the input, and the axis itself.
    const Dims steps = strides_of(in.dims);
    Dims dims, split;
    StridedView view;
    for (size_t i = 0; i < repeats.size(); ++i) {
      PY_ORT_ENSURE(repeats[i] >= 0, "Tile: repeats ", repeats, " has a negative entry");
      dims.push_back(element_count(Dims{in.dims[i], repeats[i]}));  // saturates at 64 bits
      split.insert(split.end(), {repeats[i], in.dims[i]});
      view.strides.insert(view.strides.end(), {0, steps[i]});
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    strided_copy(in, std::move(view), *out, {0, strides_of(split)}, split);
    return {};
  }
};

PY_ORT_KERNEL("", "Expand", "*;int64", OnBytes<Expand>);
PY_ORT_KERNEL("", "Tile", "*;int64", OnBytes<Tile>);

}  // namespace
}  // namespace py_ort
