// A provider, as a plan describes it.
#pragma once

#include <array>

#include "py_ort/gen/plan_generated.h"
#include "py_ort/tensor.h"

namespace py_ort {

struct Provider {
  uint32_t index = 0;  // in Plan.providers; 0: the core's own kernels
  std::string_view name;
  // The form of each dtype's elements in the device's memory; undefined: the dtype is not supported.
  std::array<DType, static_cast<size_t>(DType::MAX) + 1> forms{};

  // True if its tensors are in a device's memory, not on the heap.
  bool on_device() const { return index != 0; }
  // Its bit in the places of weights and inputs.
  uint32_t place() const { return uint32_t{1} << index; }
  DType form(DType dtype) const { return forms[static_cast<size_t>(dtype)]; }
  bool takes(DType dtype) const { return form(dtype) != DType::undefined; }
  // Bytes of one element on the device; 0: not supported.
  size_t element_size(DType dtype) const { return takes(dtype) ? byte_size(form(dtype), 1) : 0; }
};

// The bit of the heap.
inline constexpr uint32_t kHeap = 1;
// The bit of a place besides the heap; 0: there is none. If a tensor is needed on several devices, the first one keeps
// it, and the others receive it from the heap.
constexpr uint32_t device_of(uint32_t places) { return (places & ~kHeap) & -(places & ~kHeap); }

}  // namespace py_ort
