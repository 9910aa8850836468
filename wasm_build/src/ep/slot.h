// A value of a run, and where it is.
#pragma once

#include "plan/plan.h"
#include "py_ort/tensor.h"

namespace py_ort {

// A tensor that was needed on the heap and on a device is kept in both: no second transfer.
struct Slot {
  Value value;          // on the heap if it is there at all, else the device's tensor
  Tensor device;        // its storage is null when it is on none
  bool varies = false;  // Plan::varies, of the value that it was made as

  static Slot of(Value v, bool varies = false);
  static Slot of_device(Tensor t, bool varies = false);
  bool empty() const { return value.kind == Value::Kind::none; }
  bool is_tensor() const { return value.kind == Value::Kind::tensor; }
  bool on_heap() const { return !empty() && !(is_tensor() && value.tensor.location != Location::cpu); }
  // Null when it is on none.
  const Provider* provider() const { return device.storage ? device.storage->provider() : nullptr; }
  bool on(const Provider& provider) const { return this->provider() == &provider; }
};

// Makes the slot's tensor readable in the other place too; nothing happens when it is. `name` is for messages. Both may
// suspend (jsepCopyAsync): from one device to another a tensor goes through the heap. Only ever called directly, all
// the way from ort_run_execute.
Status bring_to_device(Slot& slot, const Provider& provider, std::string_view name);
Status bring_to_heap(Slot& slot, std::string_view name);

// A tensor's bytes as they lie on the device, for an upload; `size` in whole words.
Status bytes_for_device(const Tensor& tensor, const Provider& provider, std::string_view name,
                        std::shared_ptr<Storage>& bytes, size_t& size);
// Of all elements, as they lie there.
size_t device_bytes(const Tensor& tensor, const Provider& provider);

// A new tensor on the device, freed with its last holder. Its memory is a multiple of 16 bytes.
Status make_on_device(const Provider& provider, DType dtype, Dims dims, Tensor& out);

// "float32[1,3,224]", "sequence of 2", "(omitted)".
std::string describe(const Slot* slot);

}  // namespace py_ort
