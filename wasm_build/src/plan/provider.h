// A provider, as a plan tells of it.
#pragma once

#include <array>

#include "py_ort/gen/plan_generated.h"
#include "py_ort/tensor.h"

namespace py_ort {

struct Provider {
  uint32_t index = 0;  // in Plan.providers; 0: the core's own kernels
  std::string_view name;
  // By dtype, as what its elements lie in the memory of the device; undefined: it takes none.
  std::array<DType, static_cast<size_t>(DType::MAX) + 1> forms{};

  // Whether its tensors lie in the memory of a device, and not on the heap.
  bool on_device() const { return index != 0; }
  // Its bit in the places of weights and inputs.
  uint32_t place() const { return uint32_t{1} << index; }
  DType form(DType dtype) const { return forms[static_cast<size_t>(dtype)]; }
  bool takes(DType dtype) const { return form(dtype) != DType::undefined; }
  // Of one element on the device; 0: there is none.
  size_t element_size(DType dtype) const { return takes(dtype) ? byte_size(form(dtype), 1) : 0; }
};

// The bit of the heap.
inline constexpr uint32_t kHeap = 1;
// That of a place besides the heap, 0: there is none. Where a tensor is wanted on several devices, the first one keeps
// it, and the others have it from the heap.
constexpr uint32_t device_of(uint32_t places) { return (places & ~kHeap) & -(places & ~kHeap); }

}  // namespace py_ort
