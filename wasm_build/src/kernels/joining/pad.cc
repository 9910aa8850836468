// Pad, CenterCropPad: copies by a table of offsets per axis.
#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// The axes that an input (or attribute) lists; all axes without a list.
Status listed_axes(const std::vector<int64_t>* given, int64_t rank, std::vector<int64_t>& out) {
  if (given) {
    out = *given;
    return distinct_axes(out, rank);
  }
  out.resize(static_cast<size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  return {};
}

enum class PadMode : uint8_t { constant, edge, reflect, wrap };

// The source of output index `at` (0: the first of the input) in an axis of `size`; -1: none.
int64_t source(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::constant: return -1;
    case PadMode::edge: return std::clamp<int64_t>(at, 0, size - 1);
    case PadMode::wrap: return (at % size + size) % size;
    case PadMode::reflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1), phase = (at % period + period) % period;
      return phase < size ? phase : period - phase;
    }
  }
  return -1;
}

class Pad {
 public:
  static Status make(const KernelInfo& info, Pad& out) {
    static constexpr std::string_view names[] = {"constant", "edge", "reflect", "wrap"};
    const std::string mode = info.attributes.text("mode", "constant");
    const auto found = std::find(std::begin(names), std::end(names), mode);
    if (found == std::end(names))
      return invalid_graph("Pad's mode must be constant, edge, reflect or wrap, not '", mode, "'");
    out.mode_ = static_cast<PadMode>(found - std::begin(names));
    return {};
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> pads, axes, given;
    PY_ORT_TRY(read_integers(context.input(1), pads));
    if (context.input(3)) PY_ORT_TRY(read_integers(context.input(3), given));
    PY_ORT_TRY(listed_axes(context.input(3) ? &given : nullptr, in.rank(), axes));
    PY_ORT_ENSURE(pads.size() == 2 * axes.size(), "Pad: ", pads.size(), " pads for ", axes.size(), " axes of shape ",
                  in.dims);
    Dims dims = in.dims;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i], before = pads[i], after = pads[i + axes.size()], size = in.dim(axis);
      const double wide = static_cast<double>(size) + static_cast<double>(before) + static_cast<double>(after);
      PY_ORT_ENSURE(wide >= 0, "Pad: axis ", axis, " of shape ", in.dims, " gets ", before, " and ", after,
                    " and would have size ", wide);
      if (wide > 0x1p62)
        return out_of_memory("Pad: axis ", axis, " of shape ", in.dims, " gets ", before, " and ", after);
      dims[axis] = size + std::min(before, after) + std::max(before, after);
      const auto [cut, left] = kept(size, before, after);
      PY_ORT_ENSURE(left > 0 || dims[axis] == 0 || mode_ == PadMode::constant, "Pad: nothing is left of axis ", axis,
                    " of shape ", in.dims, " that could be repeated");
    }
    const Tensor* value = context.input(2);
    PY_ORT_ENSURE(!value || value->count() == 1, "Pad's constant_value must have one element, but its shape is ",
                  value->dims);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    if (out->count() == 0) return {};  // its axes may have any size
    const Dims strides = strides_of(in.dims);
    std::vector<OffsetMap> maps = whole_axes(in.dims);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i], before = pads[i];
      const auto [cut, left] = kept(in.dim(axis), before, pads[i + axes.size()]);
      maps[axis].assign(static_cast<size_t>(out->dim(axis)), -1);
      for (int64_t k = 0; k < out->dim(axis); ++k) {
        const int64_t from = source(mode_, k - std::max<int64_t>(before, 0), left);
        if (from >= 0) maps[axis][k] = (from + cut) * strides[axis];
      }
    }
    mapped_copy(in, maps, value, *out);
    return {};
  }

 private:
  struct Kept { int64_t cut, left; };
  // Negative pads cut first; the rest is repeated.
  static Kept kept(int64_t size, int64_t before, int64_t after) {
    const int64_t cut = std::max<int64_t>(-before, 0);
    return {cut, size - cut + std::min<int64_t>(after, 0)};
  }

  PadMode mode_ = PadMode::constant;
};

class CenterCropPad {
 public:
  explicit CenterCropPad(const KernelInfo& info)
      : axes_(info.attributes.integers("axes")), given_(info.attributes.has("axes")) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> sizes, axes;
    PY_ORT_TRY(read_integers(context.input(1), sizes));
    PY_ORT_TRY(listed_axes(given_ ? &axes_ : nullptr, in.rank(), axes));
    if (sizes.size() == 1) sizes.resize(axes.size(), sizes[0]);  // one size applies to all axes
    PY_ORT_ENSURE(sizes.size() == axes.size(), "CenterCropPad: shape ", sizes, " for ", axes.size(), " axes");
    Dims dims = in.dims;
    for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = sizes[i];
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    if (out->count() == 0) return {};  // its axes may have any size
    const Dims strides = strides_of(in.dims);
    std::vector<OffsetMap> maps = whole_axes(in.dims);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i], size = in.dim(axis), wanted = sizes[i];
      // The first index of the input, relative to the output: half of the excess or lack, rounded down.
      const int64_t start = wanted < size ? (size - wanted) / 2 : -((wanted - size) / 2);
      maps[axis].assign(static_cast<size_t>(wanted), -1);
      for (int64_t k = 0; k < wanted; ++k)
        if (k + start >= 0 && k + start < size) maps[axis][k] = (k + start) * strides[axis];
    }
    mapped_copy(in, maps, nullptr, *out);
    return {};
  }

 private:
  std::vector<int64_t> axes_;
  bool given_;
};

PY_ORT_KERNEL("", "Pad", "=*;int64;=*;int32,int64", OnBytes<Pad>);
PY_ORT_KERNEL("", "CenterCropPad", "*;int32,int64", CenterCropPad);

}  // namespace
}  // namespace py_ort
