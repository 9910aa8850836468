// Bringing tensors to the GPU and back.
#include "ep/slot.h"
#include "ep/jsep.h"

namespace py_ort {
namespace {

constexpr size_t kBindingUnit = 16;  // vec4 bindings are always possible
constexpr size_t kCopyUnit = 4;      // WebGPU copies whole words; tensors on the heap have room for the rest (allocate)

size_t rounded(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

size_t gpu_bytes(const Tensor& tensor) { return static_cast<size_t>(tensor.count()) * gpu_element_size(tensor.dtype); }

Status no_gpu_form(std::string_view name, DType dtype) {
  return not_implemented("'", name, "' cannot be on the GPU: ", dtype_name(dtype), " has no form there");
}

}  // namespace

Slot Slot::of(Value v, bool varies) {
  Slot slot;
  slot.value = std::move(v);
  slot.varies = varies;
  return slot;
}

Slot Slot::of_gpu(Tensor t, bool varies) {
  Slot slot;
  slot.value = Value::of(t);
  slot.gpu = std::move(t);
  slot.varies = varies;
  return slot;
}

Status make_on_gpu(DType dtype, Dims dims, Tensor& out) {
  if (!has_gpu_form(dtype)) return no_gpu_form("a new tensor", dtype);
  for (int64_t d : dims)
    if (d < 0) return runtime_error("a tensor cannot have the shape ", dims);
  out = {dtype, std::move(dims), Location::gpu, nullptr};
  if (out.count() > int64_t{UINT32_MAX} / 8)
    return out_of_memory("a tensor of shape ", out.dims, " is too large for a GPU buffer");
  const size_t size = std::max(rounded(gpu_bytes(out), kBindingUnit), kBindingUnit);
  uint32_t id = 0;
  PY_ORT_TRY(jsep::alloc(size, id));
  out.storage = Storage::on_gpu(id, size, &jsep::free);
  return {};
}

Status bring_to_gpu(Slot& slot, std::string_view name) {
  if (slot.on_gpu()) return {};
  if (!slot.is_tensor()) return not_implemented("'", name, "' is no tensor: the JS provider takes tensors only");
  const Tensor& tensor = slot.value.tensor;
  if (!has_gpu_form(tensor.dtype)) return no_gpu_form(name, tensor.dtype);
  Tensor gpu;
  PY_ORT_TRY(make_on_gpu(tensor.dtype, tensor.dims, gpu));
  std::shared_ptr<Storage> bytes;
  size_t size = 0;
  PY_ORT_TRY(bytes_for_gpu(tensor, name, bytes, size));
  if (size > 0) PY_ORT_TRY(jsep::upload(bytes->data(), gpu.storage->gpu_id(), size, tensor.dtype));
  slot.gpu = std::move(gpu);
  return {};
}

Status bytes_for_gpu(const Tensor& tensor, std::string_view name, std::shared_ptr<Storage>& bytes, size_t& size) {
  if (!has_gpu_form(tensor.dtype)) return no_gpu_form(name, tensor.dtype);
  const size_t exact = gpu_bytes(tensor);
  size = rounded(exact, kCopyUnit);
  bytes = tensor.storage;
  if (size == 0 || same_on_gpu(tensor.dtype)) return {};
  bytes = Storage::on_heap(exact);
  if (!bytes) return out_of_memory("no memory to widen '", name, "' for the GPU (", exact, " bytes)");
  return widen_for_gpu(tensor, name, bytes->data());
}

Status bring_to_cpu(Slot& slot, std::string_view name) {
  if (slot.on_cpu()) return {};
  if (!slot.on_gpu()) return runtime_error("'", name, "' has no contents: only its shape is known here");
  Tensor cpu;
  PY_ORT_TRY(Tensor::make(slot.gpu.dtype, slot.gpu.dims, cpu));
  if (const size_t size = gpu_bytes(slot.gpu); size > 0) {
    const bool same = same_on_gpu(cpu.dtype);
    auto wide = same ? cpu.storage : Storage::on_heap(size);
    if (!wide) return out_of_memory("no memory to read '", name, "' back from the GPU (", size, " bytes)");
    PY_ORT_TRY(jsep::download(slot.gpu.storage->gpu_id(), wide->data(), rounded(size, kCopyUnit)));
    if (!same) narrow_from_gpu(wide->data(), cpu.dtype, cpu.count(), cpu.storage->data());
  }
  slot.value = Value::of(std::move(cpu));
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
