#include "session/run.h"

#include "session/executor.h"
#include "core/strings.h"
#include "ep/jsep.h"

namespace py_ort {

Run::Run(std::shared_ptr<Session> session) : session_(std::move(session)), slots_(session_->constants()) {}

Status Run::check_input(uint32_t input) const {
  const size_t count = session_->plan().main().inputs.size();
  if (started_) return invalid_argument("the run has started: it takes no more feeds");
  return input < count ? Status{} : invalid_argument("there is no input ", input, ": the model has ", count);
}

Status Run::check_feed(uint32_t input, DType dtype, const Dims& dims) const {
  PY_ORT_TRY(check_input(input));
  const auto& inputs = session_->plan().main().inputs;
  const gen::Value& value = session_->plan().value(inputs[input]);
  if (value.dtype() != DType::undefined && value.dtype() != dtype)
    return invalid_argument("input '", name(inputs[input]), "' wants ", dtype_name(value.dtype()), ", not ",
                            dtype_name(dtype));
  if (!value.rank_known()) return {};
  Dims wanted;
  if (value.dims()) wanted.assign(value.dims()->begin(), value.dims()->end());
  bool fits = wanted.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = wanted[i] == -1 || wanted[i] == dims[i];
  return fits
             ? Status{}
             : invalid_argument("input '", name(inputs[input]), "' wants the shape ", wanted, " (-1: any), not ", dims);
}

Status Run::feed(uint32_t input, DType dtype, Dims dims, void* data, size_t size) {
  auto bytes = Storage::adopted(data, size);
  PY_ORT_TRY(check_feed(input, dtype, dims));
  const int32_t value = session_->plan().main().inputs[input];
  Tensor tensor{dtype, std::move(dims), Location::cpu, bytes};
  if (dtype == DType::string_) {
    PY_ORT_TRY(decode_strings(data, size, tensor));
  } else if (tensor.size_in_bytes() != size) {
    return invalid_argument("input '", name(value), "' of ", dtype_name(dtype), tensor.dims, " has ", size,
                            " bytes, not ", tensor.size_in_bytes());
  } else if (!data) {
    PY_ORT_TRY(Tensor::make(dtype, tensor.dims, tensor));  // kernels may require an address
  }
  return put_feed(value, Value::of(std::move(tensor)));
}

Status Run::feed_container(uint32_t input, Value::Kind kind, DType dtype) {
  PY_ORT_TRY(check_input(input));
  const int32_t value = session_->plan().main().inputs[input];
  const gen::Value& declared = session_->plan().value(value);
  if (declared.kind() == gen::ValueKind::tensor && declared.dtype() != DType::undefined)
    return invalid_argument("input '", name(value), "' is a tensor, not a sequence or an optional");
  Value container;
  container.kind = kind;
  container.items = std::make_shared<std::vector<Value>>();
  container.element_dtype = dtype;
  return put_feed(value, std::move(container));
}

Status Run::put_feed(int32_t value, Value fed) {
  Slot& slot = this->slot(value);
  slot.varies = true;
  Value* place = &slot.value;
  if (place->kind == Value::Kind::optional && !place->items->empty())
    place = &place->items->front();  // an optional sequence
  if (place->items) {
    place->items->push_back(std::move(fed));
  } else {
    *place = std::move(fed);
  }
  return {};
}

Status Run::feed_device(uint32_t input, uint32_t provider, DType dtype, Dims dims, uint32_t id) {
  PY_ORT_TRY(check_feed(input, dtype, dims));
  const auto& providers = session_->plan().providers();
  if (id == 0 || provider >= providers.size() || !providers[provider].takes(dtype))
    return invalid_argument("input ", input, " cannot be on the device of provider ", provider, " of ",
                            providers.size(), ": ", dtype_name(dtype), ", id ", id);
  const Provider& owner = providers[provider];
  Slot& slot = this->slot(session_->plan().main().inputs[input]);
  Tensor tensor{dtype, std::move(dims), Location::device, nullptr};
  tensor.storage = Storage::on_device(owner, id, device_bytes(tensor, owner), nullptr);
  if (!slot.on_heap()) slot.value = Value::of(tensor);
  slot.device = std::move(tensor);
  slot.varies = true;
  return {};
}

Status Run::check_all_fed() const {
  for (int32_t value : session_->plan().main().inputs)
    if (slots_[static_cast<size_t>(value)].empty()) return invalid_argument("input '", name(value), "' was not fed");
  return {};
}

Failure Run::execute() {
  if (started_) return {invalid_argument("a run is executed once: begin another one")};
  started_ = true;
  if (Status status = check_all_fed(); !status.ok()) return {std::move(status)};
  resumed_ms = jsep::now_ms();
  Status status = run_graph(*this, session_->plan().main());
  if (status.ok()) status = finish();
  slots_ = {};  // even after a failure: its memory is needed elsewhere
  return {std::move(status), failed};
}

Failure Run::refresh(const uint32_t*& words) {
  words = nullptr;
  if (started_) return {invalid_argument("a run is executed or refreshed once: begin another one")};
  started_ = true;
  if (Status status = check_all_fed(); !status.ok()) return {std::move(status)};
  bool possible = false;
  Status status = refresh_run(*this, given_, possible);
  slots_ = {};
  if (status.ok() && possible) words = given_.words();
  return {std::move(status), nullptr};
}

Status Run::finish() {
  for (int32_t value : session_->plan().main().outputs) {
    Slot& slot = this->slot(value);
    if (slot.empty()) return {ErrorCode::fail, to_text("output '", name(value), "' was not made")};
    // The page accepts outputs of one device, the plan's first.
    if (const Provider* provider = slot.provider(); provider && provider->index > 1) {
      PY_ORT_TRY(read_on_heap(*this, slot, name(value)));
      slot.device = {};
    }
    if (slot.varies && !slot.provider()) not_replayable();  // its bytes are on the heap: no recording makes them again
    outputs_.push_back(slot);
  }
  return {};
}

Status Run::describe_output(uint32_t index, const uint32_t*& words) {
  if (index >= outputs_.size()) return invalid_argument("there is no output ", index, ", or the run is not done");
  words_.clear();
  encoded_.clear();
  const auto append = [this](const auto& self, const Value& value) -> Status {
    words_.push_back(value.kind == Value::Kind::sequence ? 1 : value.kind == Value::Kind::tensor ? 0 : 2);
    if (value.kind != Value::Kind::tensor) {
      words_.push_back(value.items ? static_cast<uint32_t>(value.items->size()) : 0);
      if (value.items)
        for (const Value& item : *value.items) PY_ORT_TRY(self(self, item));
      return {};
    }
    const Tensor& tensor = value.tensor;
    std::shared_ptr<Storage> bytes = tensor.storage;
    size_t size = tensor.size_in_bytes();
    if (tensor.dtype == DType::string_) {
      PY_ORT_TRY(encode_strings(tensor, bytes));
      encoded_.push_back(bytes);
      size = bytes->size();
    }
    const Provider* provider = bytes->provider();
    const auto data = provider ? bytes->id() : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bytes->data()));
    if (provider) size = device_bytes(tensor, *provider);
    for (size_t word : {static_cast<size_t>(tensor.dtype), static_cast<size_t>(tensor.location),
                        static_cast<size_t>(data), size, tensor.dims.size()})
      words_.push_back(static_cast<uint32_t>(word));
    for (int64_t d : tensor.dims) words_.push_back(static_cast<uint32_t>(d));
    return {};
  };
  PY_ORT_TRY(append(append, outputs_[index].value));
  words = words_.data();
  return {};
}

}  // namespace py_ort
