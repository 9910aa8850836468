// DepthToSpace, SpaceToDepth: a transpose of six axes.
#include <array>

#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// Copies `in`, viewed as `dims`, with its axes in the order `perm`.
void permute(const Tensor& in, const Dims& dims, const std::array<int, 6>& perm, Tensor& out) {
  const Dims strides = strides_of(dims);
  Dims to(6);
  StridedView view{0, Dims(6)};
  for (size_t i = 0; i < 6; ++i) {
    to[i] = dims[perm[i]];
    view.strides[i] = strides[perm[i]];
  }
  strided_copy(in, std::move(view), out, {0, strides_of(to)}, to);
}

class DepthSpace {
 public:
  static Status make(const KernelInfo& info, DepthSpace& out) {
    out.block_ = info.attributes.integer("blocksize", 0);
    out.crd_ = info.attributes.text("mode", "DCR") == "CRD";
    out.to_space_ = info.op_type == "DepthToSpace";
    return out.block_ > 0 ? Status{} : invalid_graph(info.op_type, "'s blocksize is ", out.block_);
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 4, to_space_ ? "DepthToSpace" : "SpaceToDepth", " needs [N, C, H, W], got shape ",
                  in.dims);
    const int64_t n = in.dim(0), c = in.dim(1), h = in.dim(2), w = in.dim(3), b = block_;
    Tensor* out = nullptr;
    if (to_space_) {
      PY_ORT_ENSURE(c % (b * b) == 0, "DepthToSpace: ", c, " channels do not divide by blocksize² = ", b * b);
      PY_ORT_TRY(context.output(0, in.dtype, {n, c / (b * b), h * b, w * b}, out));
      if (crd_) permute(in, {n, c / (b * b), b, b, h, w}, {0, 1, 4, 2, 5, 3}, *out);
      else permute(in, {n, b, b, c / (b * b), h, w}, {0, 3, 4, 1, 5, 2}, *out);
    } else {
      PY_ORT_ENSURE(h % b == 0 && w % b == 0, "SpaceToDepth: ", h, " x ", w, " does not divide by blocksize ", b);
      PY_ORT_TRY(context.output(0, in.dtype, {n, c * b * b, h / b, w / b}, out));
      if (crd_) permute(in, {n, c, h / b, b, w / b, b}, {0, 1, 3, 5, 2, 4}, *out);
      else permute(in, {n, c, h / b, b, w / b, b}, {0, 3, 5, 1, 2, 4}, *out);
    }
    return {};
  }

 private:
  int64_t block_ = 0;
  bool crd_ = false, to_space_ = false;
};

PY_ORT_KERNEL("", "DepthToSpace", "*", DepthSpace);
PY_ORT_KERNEL("", "SpaceToDepth", "*", DepthSpace);

}  // namespace
}  // namespace py_ort
