// SequenceConstruct, SequenceEmpty, SequenceAt, SequenceInsert, SequenceErase, SequenceLength, ConcatFromSequence,
// SplitToSequence.
#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

Value sequence_of(std::vector<Value> items, DType element_dtype) {
  Value value;
  value.kind = Value::Kind::sequence;
  value.items = std::make_shared<std::vector<Value>>(std::move(items));
  value.element_dtype = element_dtype;
  return value;
}

// The items of input `i`; none for a sequence that was never filled.
const std::vector<Value>& items_of(const KernelContext& context, size_t i) {
  static const std::vector<Value> none;
  const Value* value = context.input_value(i);
  return value && value->items ? *value->items : none;
}

struct SequenceConstruct {
  Status operator()(KernelContext& context) const {
    std::vector<Value> items;
    for (size_t i = 0; i < context.input_count(); ++i) items.push_back(*context.input_value(i));
    const DType dtype = items.empty() ? DType::undefined : items[0].tensor.dtype;
    context.output_value(0, sequence_of(std::move(items), dtype));
    return {};
  }
};

class SequenceEmpty {
 public:
  explicit SequenceEmpty(const KernelInfo& info) : dtype_(static_cast<DType>(info.attributes.integer("dtype", 1))) {}
  Status operator()(KernelContext& context) const {
    context.output_value(0, sequence_of({}, dtype_));
    return {};
  }

 private:
  DType dtype_;
};

// Reads the position of At, Insert and Erase, which may count from the end.
Status read_position(const Tensor* given, int64_t count, bool end_allowed, int64_t& out) {
  PY_ORT_TRY(read_integer(*given, "the position", out));
  PY_ORT_ENSURE(out >= -count && out < count + end_allowed, "position ", out, " is out of range for a sequence of ",
                count);
  if (out < 0) out += count;
  return {};
}

struct SequenceAt {
  Status operator()(KernelContext& context) const {
    const std::vector<Value>& items = items_of(context, 0);
    int64_t at = 0;
    PY_ORT_TRY(read_position(context.input(1), static_cast<int64_t>(items.size()), false, at));
    context.output_value(0, items[at]);
    return {};
  }
};

struct SequenceInsert {
  Status operator()(KernelContext& context) const {
    std::vector<Value> items = items_of(context, 0);
    auto at = static_cast<int64_t>(items.size());
    if (context.input(2)) PY_ORT_TRY(read_position(context.input(2), at, true, at));
    const Tensor& added = *context.input(1);
    PY_ORT_ENSURE(items.empty() || items[0].tensor.dtype == added.dtype, "a ", dtype_name(added.dtype),
                  " tensor does not belong in a sequence of ", dtype_name(items[0].tensor.dtype));
    items.insert(items.begin() + at, *context.input_value(1));
    context.output_value(0, sequence_of(std::move(items), added.dtype));
    return {};
  }
};

struct SequenceErase {
  Status operator()(KernelContext& context) const {
    std::vector<Value> items = items_of(context, 0);
    PY_ORT_ENSURE(!items.empty(), "SequenceErase of an empty sequence");
    auto at = static_cast<int64_t>(items.size()) - 1;
    if (context.input(1)) PY_ORT_TRY(read_position(context.input(1), at + 1, false, at));
    items.erase(items.begin() + at);
    context.output_value(0, sequence_of(std::move(items), context.input_value(0)->element_dtype));
    return {};
  }
};

struct SequenceLength {
  Status operator()(KernelContext& context) const {
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, {}, out));
    *out->mutable_data<int64_t>() = static_cast<int64_t>(items_of(context, 0).size());
    return {};
  }
};

class ConcatFromSequence {
 public:
  static Status make(const KernelInfo& info, ConcatFromSequence& out) {
    out.new_axis_ = info.attributes.integer("new_axis", 0) != 0;
    out.axis_ = info.attributes.integer("axis", 0);
    const KernelEntry* entry = find_kernel("", "Concat");
    KernelInfo concat = info;
    concat.op_type = "Concat";
    return entry ? entry->make(concat, out.concat_)
                 : not_implemented("ConcatFromSequence needs Concat, which is not in this build");
  }
  Status operator()(KernelContext& context) const {
    const std::vector<Value>& items = items_of(context, 0);
    PY_ORT_ENSURE(!items.empty(), "ConcatFromSequence of an empty sequence");
    // With a new axis every tensor gets an axis of size 1, before they are joined.
    std::vector<Value> parts = items;
    if (new_axis_) {
      int64_t axis = 0;
      PY_ORT_TRY(normalize_axis(axis_, items[0].tensor.rank() + 1, axis));
      for (Value& part : parts) {
        Dims dims = part.tensor.dims;
        PY_ORT_ENSURE(axis <= part.tensor.rank(), "ConcatFromSequence: a tensor of shape ", dims,
                      " has no place for axis ", axis);
        dims.insert(dims.begin() + axis, 1);
        part.tensor = part.tensor.reshaped(std::move(dims));
      }
    }
    std::vector<const Value*> inputs;
    for (const Value& part : parts) inputs.push_back(&part);
    Value result;
    Value* output = &result;
    KernelContext inner(inputs, {&output, 1});
    PY_ORT_TRY(concat_->run(inner));
    context.output_value(0, std::move(result));
    return {};
  }

 private:
  bool new_axis_ = false;
  int64_t axis_ = 0;
  std::unique_ptr<Kernel> concat_;
};

class SplitToSequence {
 public:
  explicit SplitToSequence(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", 0)), keep_(info.attributes.integer("keepdims", 1) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    const int64_t size = in.dim(axis);
    std::vector<int64_t> split{1};
    const Tensor* given = context.input(1);
    if (given) PY_ORT_TRY(read_integers(*given, split));
    if (!given || given->rank() == 0) {
      const int64_t each = split[0];
      PY_ORT_ENSURE(each > 0, "SplitToSequence into parts of ", each);
      split.assign(static_cast<size_t>((size + each - 1) / each), each);
      if (size % each) split.back() = size % each;
    }
    const int64_t sum = std::accumulate(split.begin(), split.end(), int64_t{0});
    PY_ORT_ENSURE(sum == size && std::all_of(split.begin(), split.end(), [](int64_t s) { return s >= 0; }),
                  "SplitToSequence of axis ", axis, " of shape ", in.dims, " into ", split);
    const Dims strides = strides_of(in.dims);
    std::vector<Value> items;
    int64_t at = 0;
    for (const int64_t part : split) {
      Dims dims = in.dims;
      dims[axis] = part;
      Tensor piece;
      PY_ORT_TRY(Tensor::make(in.dtype, dims, piece));
      strided_copy(in, {at * strides[axis], strides}, piece, {0, strides_of(dims)}, dims);
      if (!keep_ && !given) piece.dims.erase(piece.dims.begin() + axis);
      items.push_back(Value::of(std::move(piece)));
      at += part;
    }
    context.output_value(0, sequence_of(std::move(items), in.dtype));
    return {};
  }

 private:
  int64_t axis_;
  bool keep_;
};

PY_ORT_KERNEL("", "SequenceConstruct", "*", SequenceConstruct);
PY_ORT_KERNEL("", "SequenceEmpty", "*", SequenceEmpty);
PY_ORT_KERNEL("", "SequenceAt", "*;int32,int64", SequenceAt);
PY_ORT_KERNEL("", "SequenceInsert", "*;*;int32,int64", SequenceInsert);
PY_ORT_KERNEL("", "SequenceErase", "*;int32,int64", SequenceErase);
PY_ORT_KERNEL("", "SequenceLength", "*", SequenceLength);
PY_ORT_KERNEL("", "ConcatFromSequence", "*", ConcatFromSequence);
PY_ORT_KERNEL("", "SplitToSequence", "*;int32,int64", SplitToSequence);

}  // namespace
}  // namespace py_ort
