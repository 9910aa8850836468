#include "core/control_flow/stack.h"

#include <cstring>

#include "core/executor.h"

namespace py_ort {
namespace {

// A tensor seen as [outer, length, inner] around an axis.
struct Strides {
  int64_t outer = 1, length = 1, inner = 1;
  Strides(const Dims& dims, int64_t axis) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) (i < axis ? outer : i == axis ? length : inner) *= dims[static_cast<size_t>(i)];
  }
};

// Copies `inner` elements, `outer` times, from one layout to the other. Steps are in elements.
void copy_blocks(const Tensor& from, int64_t from_offset, int64_t from_step, Tensor& to, int64_t to_offset, int64_t to_step, int64_t outer, int64_t inner) {
  const size_t size = byte_size(from.dtype, 1);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t source = from_offset + o * from_step, target = to_offset + o * to_step;
    if (from.dtype == DType::string_) {
      std::copy_n(from.strings() + source, inner, to.mutable_strings() + target);
    } else {
      std::memcpy(to.mutable_data<uint8_t>() + static_cast<size_t>(target) * size, from.data<uint8_t>() + static_cast<size_t>(source) * size, static_cast<size_t>(inner) * size);
    }
  }
}

Status check_whole_bytes(DType dtype) {
  return dtype == DType::string_ || byte_size(dtype, 2) == 2 * byte_size(dtype, 1) ? Status{} : not_implemented("Loop and Scan cannot take ", dtype_name(dtype), " apart");
}

// No iteration at all: what the model says of the body's output, unknown dimensions being 0.
Status empty_stack(const gen::Value& value, int64_t axis, Tensor& out) {
  Dims dims;
  if (value.dims())
    for (int32_t d : *value.dims()) dims.push_back(std::max(d, 0));
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  if (axis < -rank || axis >= rank) axis = 0;
  dims.insert(dims.begin() + (axis < 0 ? axis + rank : axis), 0);
  return Tensor::make(value.dtype() == DType::undefined ? DType::float32 : value.dtype(), std::move(dims), out);
}

}  // namespace

Status stack(Run& run, std::vector<Slot>& parts, int32_t value, int64_t axis, bool reverse, Slot& out) {
  Tensor whole;
  bool from_feeds = false;
  if (parts.empty()) {
    PY_ORT_TRY(empty_stack(run.session().plan().value(value), axis, whole));
    out = Slot::of(Value::of(std::move(whole)), false);
    return {};
  }
  for (Slot& part : parts) {
    if (!part.is_tensor()) return runtime_error("scan output '", run.name(value), "' is ", describe(&part), ", not a tensor");
    PY_ORT_TRY(read_on_cpu(run, part, run.name(value)));
    from_feeds |= part.from_feeds;
    const Tensor &here = part.value.tensor, &first = parts[0].value.tensor;
    if (here.dtype != first.dtype || here.dims != first.dims)
      return runtime_error("scan output '", run.name(value), "' is ", describe(&part), " after ", describe(&parts[0]));
  }
  const Tensor& first = parts[0].value.tensor;
  PY_ORT_TRY(check_whole_bytes(first.dtype));
  const int64_t rank = first.rank() + 1;
  if (axis < -rank || axis >= rank) return runtime_error("scan output '", run.name(value), "' of rank ", rank, " has no axis ", axis);
  if (axis < 0) axis += rank;
  Dims dims = first.dims;
  const auto length = static_cast<int64_t>(parts.size());
  dims.insert(dims.begin() + axis, length);
  PY_ORT_TRY(Tensor::make(first.dtype, dims, whole));
  const Strides strides(dims, axis);
  for (int64_t i = 0; i < length; ++i) {
    const Tensor& part = parts[static_cast<size_t>(reverse ? length - 1 - i : i)].value.tensor;
    copy_blocks(part, 0, strides.inner, whole, i * strides.inner, length * strides.inner, strides.outer, strides.inner);
  }
  out = Slot::of(Value::of(std::move(whole)), from_feeds);
  return {};
}

Status slice(const Slot& whole, int64_t axis, int64_t index, Slot& out) {
  const Tensor& tensor = whole.value.tensor;
  PY_ORT_TRY(check_whole_bytes(tensor.dtype));
  if (axis < 0) axis += tensor.rank();
  Dims dims = tensor.dims;
  dims.erase(dims.begin() + axis);
  Tensor part;
  PY_ORT_TRY(Tensor::make(tensor.dtype, std::move(dims), part));
  const Strides strides(tensor.dims, axis);
  copy_blocks(tensor, index * strides.inner, strides.length * strides.inner, part, 0, strides.inner, strides.outer, strides.inner);
  out = Slot::of(Value::of(std::move(part)), whole.from_feeds);
  return {};
}

}  // namespace py_ort
