// Scatter, ScatterElements, ScatterND, TensorScatter.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/elementwise/binary.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// Blocks of `length` elements: block i of `updates` goes to (or is combined with) targets[i] of a copy of `data`.
class Scatterer {
 public:
  static Status make(const KernelInfo& info, Scatterer& out) {
    const std::string reduction = info.attributes.text("reduction", "none");
    if (reduction == "none") return {};
    static constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"add", "Add"}, {"mul", "Mul"}, {"max", "Max"}, {"min", "Min"}};
    for (const auto& [name, op_type] : names)
      if (reduction == name) out.combine_ = arithmetic_loops(op_type);
    if (!out.combine_)
      return invalid_graph(info.op_type, "'s reduction must be none, add, mul, max or min, not '", reduction, "'");
    return {};
  }
  Status run(KernelContext& context, const Tensor& data, const Tensor& updates, const std::vector<int64_t>& targets,
             int64_t length) const {
    if (!combine_) {
      Tensor* out = nullptr;
      PY_ORT_TRY(context.output(0, data.dtype, data.dims, out));
      copy_elements(data, 0, *out, 0, data.count());
      for (size_t i = 0; i < targets.size(); ++i)
        copy_elements(updates, static_cast<int64_t>(i) * length, *out, targets[i], length);
      return {};
    }
    PY_ORT_ENSURE(data.dtype != DType::string_, "strings cannot be combined by a reduction");
    // In lanes throughout, so that float16 is rounded once.
    Tensor wide, more, total, result;
    PY_ORT_TRY(widened(data, wide));
    PY_ORT_TRY(widened(updates, more));
    PY_ORT_TRY(Tensor::make(wide.dtype, wide.dims, total));
    copy_elements(wide, 0, total, 0, wide.count());
    const Lane lane = lane_of(data.dtype);
    const size_t width = lane_size(lane);
    BinaryLoop loop = combine_->lanes[static_cast<size_t>(lane)];
    if (!loop) loop = combine_->widths[width == 4 ? 2 : 3];
    std::vector<char> block(static_cast<size_t>(length) * width);
    for (size_t i = 0; i < targets.size(); ++i) {
      char* to = total.mutable_data<char>() + static_cast<size_t>(targets[i]) * width;
      loop(to, more.data<char>() + i * block.size(), block.data(), static_cast<size_t>(length), true, true, 0);
      std::copy(block.begin(), block.end(), to);
    }
    PY_ORT_TRY(cast(total, data.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  const BinaryLoops* combine_ = nullptr;
};

class ScatterElements {
 public:
  static Status make(const KernelInfo& info, ScatterElements& out) {
    out.axis_ = info.attributes.integer("axis", 0);
    return Scatterer::make(info, out.scatterer_);
  }
  Status operator()(KernelContext& context) const {
    const Tensor &data = *context.input(0), &indices = *context.input(1), &updates = *context.input(2);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, data.rank(), axis));
    PY_ORT_ENSURE(indices.dims == updates.dims && indices.rank() == data.rank(), "ScatterElements: indices of shape ",
                  indices.dims, " and updates of shape ", updates.dims, " for data of shape ", data.dims);
    for (int64_t d = 0; d < data.rank(); ++d)
      PY_ORT_ENSURE(d == axis || indices.dim(d) <= data.dim(d), "ScatterElements: indices of shape ", indices.dims,
                    " reach beyond data of shape ", data.dims);
    std::vector<int64_t> targets;
    PY_ORT_TRY(read_integers(indices, targets));
    PY_ORT_TRY(normalize_indices(targets, data.dim(axis), "indices"));
    const Dims strides = strides_of(data.dims);
    Dims index(indices.dims.size());
    for (int64_t& target : targets) {
      target *= strides[axis];
      for (size_t d = 0; d < index.size(); ++d)
        if (static_cast<int64_t>(d) != axis) target += index[d] * strides[d];
      for (size_t d = index.size(); d-- > 0 && ++index[d] == indices.dims[d];) index[d] = 0;
    }
    return scatterer_.run(context, data, updates, targets, 1);
  }

 private:
  int64_t axis_ = 0;
  Scatterer scatterer_;
};

class ScatterND {
 public:
  static Status make(const KernelInfo& info, ScatterND& out) { return Scatterer::make(info, out.scatterer_); }
  Status operator()(KernelContext& context) const {
    const Tensor &data = *context.input(0), &indices = *context.input(1), &updates = *context.input(2);
    PY_ORT_ENSURE(indices.rank() >= 1 && indices.dim(-1) <= data.rank(), "ScatterND: indices of shape ", indices.dims,
                  " for data of shape ", data.dims);
    const int64_t depth = indices.dim(-1), length = count_between(data.dims, depth, data.rank());
    Dims expected(indices.dims.begin(), indices.dims.end() - 1);
    const int64_t rows = element_count(expected);
    expected.insert(expected.end(), data.dims.begin() + depth, data.dims.end());
    PY_ORT_ENSURE(updates.dims == expected, "ScatterND: updates of shape ", updates.dims, ", expected ", expected);
    std::vector<int64_t> at, targets(static_cast<size_t>(rows));
    PY_ORT_TRY(read_integers(indices, at));
    const Dims strides = strides_of(data.dims);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t index = at[row * depth + d], size = data.dim(d);
        PY_ORT_ENSURE(index >= -size && index < size, "ScatterND: index ", index, " is out of range for axis ", d,
                      " of shape ", data.dims);
        targets[row] += (index < 0 ? index + size : index) * strides[d];
      }
    return scatterer_.run(context, data, updates, targets, length);
  }

 private:
  Scatterer scatterer_;
};

class TensorScatter {
 public:
  explicit TensorScatter(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", -2)), circular_(info.attributes.text("mode", "linear") == "circular") {}
  Status operator()(KernelContext& context) const {
    const Tensor &cache = *context.input(0), &update = *context.input(1);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, cache.rank(), axis));
    Dims expected = cache.dims;
    PY_ORT_ENSURE(axis > 0 && update.rank() == cache.rank(), "TensorScatter along axis ", axis, " of ", cache.dims,
                  " with an update of ", update.dims);
    expected[axis] = update.dim(axis);
    PY_ORT_ENSURE(expected == update.dims && update.dim(axis) <= cache.dim(axis), "TensorScatter: an update of ",
                  update.dims, " does not fit a cache of ", cache.dims, " along axis ", axis);
    std::vector<int64_t> starts(static_cast<size_t>(cache.dim(0)));
    if (const Tensor* given = context.input(2)) PY_ORT_TRY(read_integers(*given, starts));
    PY_ORT_ENSURE(static_cast<int64_t>(starts.size()) == cache.dim(0), "TensorScatter: ", starts.size(),
                  " write indices for a batch of ", cache.dim(0));
    const int64_t most = cache.dim(axis), count = update.dim(axis),
                  length = count_between(cache.dims, axis + 1, cache.rank());
    const int64_t outer = count_between(cache.dims, 0, axis), per_batch = count_between(cache.dims, 1, axis);
    std::vector<int64_t> targets;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = starts[o / per_batch] + i, row = circular_ ? (at % most + most) % most : at;
        PY_ORT_ENSURE(row >= 0 && row < most, "TensorScatter: write index ", at, " is out of range for an axis of ",
                      most);
        targets.push_back((o * most + row) * length);
      }
    return Scatterer{}.run(context, cache, update, targets, length);
  }

 private:
  int64_t axis_;
  bool circular_;
};

PY_ORT_KERNEL("", "ScatterElements", "=*;int32,int64;=*", OnBytes<ScatterElements>);
PY_ORT_KERNEL("", "ScatterND", "=*;int64;=*", OnBytes<ScatterND>);
PY_ORT_KERNEL("", "TensorScatter", "=*;=*;int64", OnBytes<TensorScatter>);

}  // namespace
}  // namespace py_ort
