// Transfers of tensors from the heap to a device, and back.
#include "ep/jsep.h"
#include "ep/slot.h"
#include "plan/element_forms.h"

namespace py_ort {
namespace {

constexpr size_t kBindingUnit = 16;  // so that vec4 bindings are always possible
constexpr size_t kCopyUnit = 4;      // copies have whole words; tensors on the heap have room for them (allocate)

size_t rounded(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

Status no_form(std::string_view name, const Provider& provider, DType dtype) {
  return not_implemented("'", name, "' cannot be on ", provider.name, ": ", dtype_name(dtype), " has no form there");
}

}  // namespace

Slot Slot::of(Value v, bool varies) {
  Slot slot;
  slot.value = std::move(v);
  slot.varies = varies;
  return slot;
}

Slot Slot::of_device(Tensor t, bool varies) {
  Slot slot;
  slot.value = Value::of(t);
  slot.device = std::move(t);
  slot.varies = varies;
  return slot;
}

size_t device_bytes(const Tensor& tensor, const Provider& provider) {
  return static_cast<size_t>(tensor.count()) * provider.element_size(tensor.dtype);
}

Status make_on_device(const Provider& provider, DType dtype, Dims dims, Tensor& out) {
  if (!provider.takes(dtype)) return no_form("a new tensor", provider, dtype);
  for (int64_t d : dims)
    if (d < 0) return runtime_error("a tensor cannot have the shape ", dims);
  out = {dtype, std::move(dims), Location::device, nullptr};
  if (out.count() > int64_t{UINT32_MAX} / 8)
    return out_of_memory("a tensor of shape ", out.dims, " is too large for ", provider.name);
  const size_t size = std::max(rounded(device_bytes(out, provider), kBindingUnit), kBindingUnit);
  uint32_t id = 0;
  PY_ORT_TRY(jsep::alloc(provider, size, id));
  out.storage = Storage::on_device(provider, id, size, &jsep::free);
  return {};
}

Status bring_to_device(Slot& slot, const Provider& provider, std::string_view name) {
  if (slot.on(provider)) return {};
  if (!slot.is_tensor()) return not_implemented("'", name, "' is no tensor: ", provider.name, " takes tensors only");
  PY_ORT_TRY(bring_to_heap(slot, name));
  const Tensor& tensor = slot.value.tensor;
  if (!provider.takes(tensor.dtype)) return no_form(name, provider, tensor.dtype);
  Tensor made;
  PY_ORT_TRY(make_on_device(provider, tensor.dtype, tensor.dims, made));
  std::shared_ptr<Storage> bytes;
  size_t size = 0;
  PY_ORT_TRY(bytes_for_device(tensor, provider, name, bytes, size));
  if (size > 0) PY_ORT_TRY(jsep::upload(provider, bytes->data(), made.storage->id(), size, tensor.dtype));
  slot.device = std::move(made);
  return {};
}

Status bytes_for_device(const Tensor& tensor, const Provider& provider, std::string_view name,
                        std::shared_ptr<Storage>& bytes, size_t& size) {
  if (!provider.takes(tensor.dtype)) return no_form(name, provider, tensor.dtype);
  const size_t exact = device_bytes(tensor, provider);
  size = rounded(exact, kCopyUnit);
  bytes = tensor.storage;
  if (size == 0 || provider.form(tensor.dtype) == tensor.dtype) return {};
  bytes = Storage::on_heap(exact);
  if (!bytes) return out_of_memory("no memory to bring '", name, "' to ", provider.name, " (", exact, " bytes)");
  return to_form(tensor, name, provider, bytes->data());
}

Status bring_to_heap(Slot& slot, std::string_view name) {
  if (slot.on_heap()) return {};
  const Provider* provider = slot.provider();
  if (!provider) return runtime_error("'", name, "' has no contents: only its shape is known here");
  Tensor here;
  PY_ORT_TRY(Tensor::make(slot.device.dtype, slot.device.dims, here));
  if (const size_t size = device_bytes(slot.device, *provider); size > 0) {
    const bool same = provider->form(here.dtype) == here.dtype;
    auto bytes = same ? here.storage : Storage::on_heap(size);
    if (!bytes)
      return out_of_memory("no memory to read '", name, "' back from ", provider->name, " (", size, " bytes)");
    PY_ORT_TRY(jsep::download(*provider, slot.device.storage->id(), bytes->data(), rounded(size, kCopyUnit)));
    if (!same) from_form(bytes->data(), here.dtype, here.count(), here.storage->data());
  }
  slot.value = Value::of(std::move(here));
  return {};
}

std::string describe(const Slot* slot) {
  if (!slot || slot->empty()) return "(omitted)";
  if (slot->is_tensor()) return to_text(dtype_name(slot->value.tensor.dtype), slot->value.tensor.dims);
  const size_t count = slot->value.items ? slot->value.items->size() : 0;
  return slot->value.kind == Value::Kind::sequence ? to_text("sequence of ", count)
                                                   : std::string(count ? "optional" : "empty optional");
}

}  // namespace py_ort
