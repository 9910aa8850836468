#include "session/control_flow/stack.h"

#include <cstring>

#include "session/executor.h"
#include "ep/jsep.h"

namespace py_ort {
namespace {

// A tensor viewed as [outer, length, inner] around an axis.
struct Strides {
  int64_t outer = 1, length = 1, inner = 1;
  Strides(const Dims& dims, int64_t axis) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i)
      (i < axis ? outer : i == axis ? length : inner) *= dims[static_cast<size_t>(i)];
  }
};

// `count` blocks of `size` elements, `step` apart. Numbers of elements.
struct Place { int64_t offset, step; };

void copy_on_heap(const Tensor& from, Place source, Tensor& to, Place target, int64_t count, int64_t elements) {
  const size_t size = byte_size(from.dtype, 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t read = source.offset + i * source.step, written = target.offset + i * target.step;
    if (from.dtype == DType::string_) {
      std::copy_n(from.strings() + read, elements, to.mutable_strings() + written);
    } else {
      std::memcpy(to.mutable_data<uint8_t>() + static_cast<size_t>(written) * size,
                  from.data<uint8_t>() + static_cast<size_t>(read) * size, static_cast<size_t>(elements) * size);
    }
  }
}

Status copy_on_device(const Tensor& from, Place source, const Tensor& to, Place target, int64_t count,
                      int64_t elements) {
  if (count * elements == 0) return {};
  const Provider& provider = *from.storage->provider();
  const size_t size = provider.element_size(from.dtype);
  const auto bytes = [size](int64_t n) { return static_cast<size_t>(n) * size; };
  return jsep::copy(provider, from.storage->id(), to.storage->id(), from.dtype,
                    {bytes(elements), static_cast<size_t>(count), bytes(source.offset), bytes(source.step),
                     bytes(target.offset), bytes(target.step)});
}

Status check_whole_bytes(DType dtype) {
  return dtype == DType::string_ || byte_size(dtype, 2) == 2 * byte_size(dtype, 1)
             ? Status{}
             : not_implemented("Loop and Scan cannot take ", dtype_name(dtype), " apart");
}

// Without iterations: the model's type of the body's output, with 0 for unknown dimensions.
Status empty_stack(const gen::Value& value, int64_t axis, Tensor& out) {
  Dims dims;
  if (value.dims())
    for (int32_t d : *value.dims()) dims.push_back(std::max(d, 0));
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  if (axis < -rank || axis >= rank) axis = 0;
  dims.insert(dims.begin() + (axis < 0 ? axis + rank : axis), 0);
  return Tensor::make(value.dtype() == DType::undefined ? DType::float32 : value.dtype(), std::move(dims), out);
}

// The body's input that receives the node's input `i`, or kOmitted.
int32_t inside(const PlanNode& node, const PlanGraph& body, size_t i) {
  const bool carried =
      node.form == Form::scan || node.form == Form::sequence_map || (node.form == Form::loop && i >= 2);
  return carried && i < body.inputs.size() ? body.inputs[i] : kOmitted;
}

}  // namespace

Status Stack::check(const Slot& part) {
  if (!part.is_tensor())
    return runtime_error("scan output '", run_.name(value_), "' is ", describe(&part), ", not a tensor");
  const Slot& first = parts_.empty() ? whole_ : parts_.front();
  const Tensor& here = part.value.tensor;
  if (first.empty()) return check_whole_bytes(here.dtype);
  Dims dims = first.value.tensor.dims;
  if (parts_.empty()) dims.erase(dims.begin() + axis_);
  if (here.dtype != first.value.tensor.dtype || here.dims != dims)
    return runtime_error("scan output '", run_.name(value_), "' is ", describe(&part), " after ",
                         dtype_name(first.value.tensor.dtype), dims);
  return {};
}

Status Stack::begin(const Slot& part) {
  const Tensor& first = part.value.tensor;
  const int64_t rank = first.rank() + 1;
  if (axis_ < -rank || axis_ >= rank)
    return runtime_error("scan output '", run_.name(value_), "' of rank ", rank, " has no axis ", axis_);
  if (axis_ < 0) axis_ += rank;
  Dims dims = first.dims;
  dims.insert(dims.begin() + axis_, length_);
  Tensor whole;
  if (const Provider* provider = part.provider()) {
    PY_ORT_TRY(make_on_device(*provider, first.dtype, std::move(dims), whole));
    whole_ = Slot::of_device(std::move(whole));
  } else {
    PY_ORT_TRY(Tensor::make(first.dtype, std::move(dims), whole));
    whole_ = Slot::of(Value::of(std::move(whole)));
  }
  return {};
}

Status Stack::write(Slot& part, int64_t index) {
  if (index == 0) PY_ORT_TRY(begin(part));
  const Strides strides(whole_.value.tensor.dims, axis_);
  const Place from{0, strides.inner},
      to{(reverse_ ? length_ - 1 - index : index) * strides.inner, length_ * strides.inner};
  if (const Provider* provider = whole_.provider()) {
    PY_ORT_TRY(read_on_device(run_, part, *provider, run_.name(value_)));
    return copy_on_device(part.device, from, whole_.device, to, strides.outer, strides.inner);
  }
  PY_ORT_TRY(read_on_heap(run_, part, run_.name(value_)));
  copy_on_heap(part.value.tensor, from, whole_.value.tensor, to, strides.outer, strides.inner);
  return {};
}

Status Stack::push(Slot part) {
  PY_ORT_TRY(check(part));
  if (length_ >= 0) PY_ORT_TRY(write(part, count_));
  else parts_.push_back(std::move(part));
  ++count_;
  return {};
}

Status Stack::finish(Slot& out) {
  if (count_ == 0) {
    Tensor none;
    PY_ORT_TRY(empty_stack(run_.session().plan().value(value_), axis_, none));
    out = Slot::of(Value::of(std::move(none)));
    return {};
  }
  if (length_ < 0) {
    length_ = count_;
    for (int64_t i = 0; i < count_; ++i) {
      PY_ORT_TRY(write(parts_[static_cast<size_t>(i)], i));
      parts_[static_cast<size_t>(i)] = {};
    }
  }
  out = std::move(whole_);
  return {};
}

uint32_t readers_of(const Plan& plan, const PlanGraph& graph, int32_t value) {
  uint32_t places = 0;
  for (const PlanNode& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != value || node.uses[i] == gen::InputUse::shape) continue;
      if (node.uses[i] == gen::InputUse::host) places |= kHeap;
      else if (node.form == Form::kernel) places |= node.provider->place();
      for (const auto& [name, index] : node.subgraphs)
        if (const int32_t local = inside(node, plan.graphs()[index], i); local != kOmitted)
          places |= readers_of(plan, plan.graphs()[index], local);
    }
    for (const auto& [name, index] : node.subgraphs) places |= readers_of(plan, plan.graphs()[index], value);
  }
  return places;
}

Status bring_to_readers(Run& run, Slot& whole, std::string_view name, uint32_t places) {
  const uint32_t device = device_of(places);
  if (places & kHeap || (places & ~kHeap) != device) PY_ORT_TRY(read_on_heap(run, whole, name));
  if (device) PY_ORT_TRY(read_on_device(run, whole, run.session().plan().provider_at(device), name));
  return places || whole.on_heap() || whole.provider()
             ? Status{}
             : runtime_error("'", name, "' has no contents: only its shape is known here");
}

Status slice(const Slot& whole, int64_t axis, int64_t index, uint32_t places, Slot& out) {
  const Tensor& tensor = whole.value.tensor;
  PY_ORT_TRY(check_whole_bytes(tensor.dtype));
  if (axis < 0) axis += tensor.rank();
  Dims dims = tensor.dims;
  dims.erase(dims.begin() + axis);
  const Strides strides(tensor.dims, axis);
  const Place from{index * strides.inner, strides.length * strides.inner}, to{0, strides.inner};
  out = {};
  const Provider* provider = whole.provider();
  if (provider && (!places || places & provider->place())) {
    Tensor part;
    if (strides.length == 1) {
      part = whole.device.reshaped(dims);
    } else {
      PY_ORT_TRY(make_on_device(*provider, tensor.dtype, dims, part));
      PY_ORT_TRY(copy_on_device(whole.device, from, part, to, strides.outer, strides.inner));
    }
    out = Slot::of_device(std::move(part), whole.varies);
  }
  if (whole.on_heap() && ((places & ~device_of(places)) || out.empty())) {
    Tensor part;
    PY_ORT_TRY(Tensor::make(tensor.dtype, std::move(dims), part));
    copy_on_heap(tensor, from, part, to, strides.outer, strides.inner);
    out.value = Value::of(std::move(part));
    out.varies = whole.varies;
  }
  return {};
}

}  // namespace py_ort
