#include "py_ort/kernel.h"

#include <algorithm>

namespace py_ort {

const schema::gen::Attribute* Attributes::find(std::string_view name) const {
  if (!table_ || !table_->items()) return nullptr;
  for (const auto* item : *table_->items())
    if (item->name()->string_view() == name) return item;
  return nullptr;
}

int64_t Attributes::integer(std::string_view name, int64_t otherwise) const {
  const auto* item = find(name);
  return item ? item->i() : otherwise;
}
float Attributes::number(std::string_view name, float otherwise) const {
  const auto* item = find(name);
  return item ? item->f() : otherwise;
}
std::string_view Attributes::view(std::string_view name, std::string_view otherwise) const {
  const auto* item = find(name);
  return item && item->s() ? item->s()->string_view() : otherwise;
}
std::string Attributes::text(std::string_view name, std::string_view otherwise) const {
  return std::string(view(name, otherwise));
}
std::vector<int64_t> Attributes::integers(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* item = find(name);
  if (!item || !item->ints()) return otherwise;
  return {item->ints()->begin(), item->ints()->end()};
}
std::vector<float> Attributes::numbers(std::string_view name, std::vector<float> otherwise) const {
  const auto* item = find(name);
  if (!item || !item->floats()) return otherwise;
  return {item->floats()->begin(), item->floats()->end()};
}
std::vector<std::string> Attributes::texts(std::string_view name) const {
  std::vector<std::string> out;
  if (const auto* item = find(name); item && item->strings())
    for (const auto* text : *item->strings()) out.push_back(text->str());
  return out;
}
std::optional<Tensor> Attributes::tensor(std::string_view name) const {
  const auto* item = find(name);
  if (!item || !item->tensor()) return std::nullopt;
  const auto* value = item->tensor();
  Tensor tensor;
  Dims dims;
  if (value->dims()) dims.assign(value->dims()->begin(), value->dims()->end());
  if (!Tensor::make(value->dtype(), std::move(dims), tensor).ok()) return std::nullopt;
  if (value->strings()) {
    for (flatbuffers::uoffset_t i = 0; i < value->strings()->size(); ++i)
      tensor.mutable_strings()[i] = value->strings()->Get(i)->str();
  } else if (value->data()) {
    std::copy(value->data()->begin(), value->data()->end(), tensor.mutable_data<uint8_t>());
  }
  return tensor;
}

const Tensor& Input::missing() { throw MissingInput(); }

bool KernelContext::ends(size_t i) const {
  // Views, copies of a loop's state and elements of sequences share the storage.
  return i < ending_.size() && ending_[i] && inputs_[i] && inputs_[i]->tensor.storage.use_count() == 1 &&
         inputs_[i]->tensor.storage->writable();
}

Status KernelContext::output(size_t i, DType dtype, Dims dims, Tensor*& out, std::initializer_list<size_t> over) {
  Tensor tensor;
  const int64_t count = element_count(dims);
  const auto taken = std::find_if(over.begin(), over.end(), [&](size_t k) {
    return ends(k) && input(k)->dtype == dtype && input(k)->count() == count;
  });
  if (taken != over.end()) tensor = {dtype, std::move(dims), Location::cpu, input(*taken)->storage};
  else PY_ORT_TRY(Tensor::make(dtype, std::move(dims), tensor));
  if (wants(i)) {
    *outputs_[i] = Value::of(std::move(tensor));
    out = &outputs_[i]->tensor;
  } else {
    dropped_.push_back(std::make_unique<Value>(Value::of(std::move(tensor))));
    out = &dropped_.back()->tensor;
  }
  return {};
}
void KernelContext::output(size_t i, Tensor tensor) { output_value(i, Value::of(std::move(tensor))); }
void KernelContext::output_value(size_t i, Value value) {
  if (wants(i)) *outputs_[i] = std::move(value);
}

std::vector<KernelEntry>& kernel_registry() {
  static std::vector<KernelEntry> entries;
  return entries;
}
const KernelEntry* find_kernel(std::string_view domain, std::string_view op_type) {
  for (const auto& entry : kernel_registry())
    if (domain == entry.domain && op_type == entry.op_type) return &entry;
  return nullptr;
}

}  // namespace py_ort
