#include "ep/jsep_call.h"

#include "ep/jsep.h"

namespace py_ort {

JsepCall* JsepCall::current_ = nullptr;

JsepCall::JsepCall(const Plan& plan, const PlanNode& node, const std::vector<Slot*>& inputs)
    : plan_(plan), node_(node), inputs_(inputs), outputs_(node.outputs.size()) {
  words_ = {static_cast<uint32_t>(inputs.size()), static_cast<uint32_t>(outputs_.size())};
  for (size_t i = 0; i < inputs.size(); ++i) append(inputs[i], node.uses[i]);
  for (int32_t value : node.outputs) words_.push_back(value != kOmitted);
  current_ = this;
}

// dtype, location, data, bytes, rank, dims...
void JsepCall::append(const Slot* slot, gen::InputUse use) {
  if (!slot) {
    words_.insert(words_.end(), {0, 0, 0, 0, 0});
    return;
  }
  const Tensor& tensor = slot->value.tensor;
  Location location = Location::none;
  uint32_t data = 0;
  size_t bytes = 0;
  if (use == gen::InputUse::device) {
    location = Location::device;
    data = slot->device.storage->id();
    bytes = device_bytes(tensor, *node_.provider);
  } else if (use == gen::InputUse::host) {
    location = Location::cpu;
    data = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(tensor.storage->data()));
    bytes = tensor.size_in_bytes();
  }
  for (size_t word : {static_cast<size_t>(tensor.dtype), static_cast<size_t>(location), static_cast<size_t>(data),
                      bytes, tensor.dims.size()})
    words_.push_back(static_cast<uint32_t>(word));
  for (int64_t d : tensor.dims) words_.push_back(static_cast<uint32_t>(d));
}

Status JsepCall::run(uint32_t kernel) { return jsep::run(*node_.provider, kernel, words_.data()); }

JsepCall* JsepCall::with_context(uint32_t context) {
  return current_ && context == static_cast<uint32_t>(reinterpret_cast<uintptr_t>(current_->words_.data())) ? current_
                                                                                                            : nullptr;
}

bool JsepCall::fail(const Status& status) {
  jsep::set_error(status.code(), status.message().c_str());
  return false;
}

DType JsepCall::planned_dtype(uint32_t index) const {
  const int32_t value = node_.outputs[index];
  return value == kOmitted ? DType::undefined : plan_.value(value).dtype();
}

uint32_t JsepCall::output(uint32_t index, DType dtype, Dims dims) {
  if (index >= outputs_.size()) return fail(invalid_argument("the kernel has no output ", index));
  Tensor& out = outputs_[index];
  if (out.storage) return fail(invalid_argument("the kernel makes output ", index, " twice"));
  if (dtype == DType::undefined) dtype = planned_dtype(index);
  if (dtype == DType::undefined)
    return fail(
        invalid_argument("the plan does not say of what type output ", index, " is: say it to ort_jsep_output"));
  if (Status status = make_on_device(*node_.provider, dtype, std::move(dims), out); !status.ok()) return fail(status);
  return out.storage->id();
}

bool JsepCall::output_view(uint32_t index, uint32_t input, Dims dims) {
  if (index >= outputs_.size() || input >= inputs_.size() || !inputs_[input] || !inputs_[input]->on(*node_.provider))
    return fail(invalid_argument("output ", index, " cannot be a view of input ", input));
  const Tensor& source = inputs_[input]->device;
  if (element_count(dims) != source.count())
    return fail(
        invalid_argument("output ", index, " of shape ", dims, " cannot be a view of an input of shape ", source.dims));
  outputs_[index] = source.reshaped(std::move(dims));
  return true;
}

}  // namespace py_ort
