// A value of a run, and where it is.
#pragma once

#include "plan/plan.h"
#include "py_ort/tensor.h"

namespace py_ort {

// A tensor that was needed on the heap and on a device is kept in both, without a second transfer.
struct Slot {
  Value value;          // on the heap if it is there, otherwise the device's tensor
  Tensor device;        // storage is null if the value is on no device
  bool varies = false;  // Plan::varies of the value as it was made

  static Slot of(Value v, bool varies = false);
  static Slot of_device(Tensor t, bool varies = false);
  bool empty() const { return value.kind == Value::Kind::none; }
  bool is_tensor() const { return value.kind == Value::Kind::tensor; }
  bool on_heap() const { return !empty() && !(is_tensor() && value.tensor.location != Location::cpu); }
  // Null if the value is on no device.
  const Provider* provider() const { return device.storage ? device.storage->provider() : nullptr; }
  bool on(const Provider& provider) const { return this->provider() == &provider; }
};

// Makes the slot's tensor readable in the other place too; does nothing if it already is. `name` is for messages. Both
// may suspend (jsepCopyAsync): a tensor goes from one device to another through the heap. Call them directly, all the
// way from ort_run_execute.
Status bring_to_device(Slot& slot, const Provider& provider, std::string_view name);
Status bring_to_heap(Slot& slot, std::string_view name);

// A tensor's bytes in the device's form, for an upload; `size` in whole words.
Status bytes_for_device(const Tensor& tensor, const Provider& provider, std::string_view name,
                        std::shared_ptr<Storage>& bytes, size_t& size);
// Bytes of all elements in the device's form.
size_t device_bytes(const Tensor& tensor, const Provider& provider);

// A new tensor on the device, freed with its last owner. Its memory is a multiple of 16 bytes.
Status make_on_device(const Provider& provider, DType dtype, Dims dims, Tensor& out);

// "float32[1,3,224]", "sequence of 2", "(omitted)".
std::string describe(const Slot* slot);

}  // namespace py_ort
