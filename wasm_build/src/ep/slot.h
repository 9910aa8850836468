// A value of a run, and where it is.
#pragma once

#include "plan/plan.h"
#include "py_ort/tensor.h"

namespace py_ort {

// A tensor that was needed in both places is kept in both: no second transfer.
struct Slot {
  Value value;          // on the CPU if it is there at all, else the GPU's tensor
  Tensor gpu;           // its storage is null when it is not on the GPU
  bool varies = false;  // Plan::varies, of the value that it was made as

  static Slot of(Value v, bool varies = false);
  static Slot of_gpu(Tensor t, bool varies = false);
  bool empty() const { return value.kind == Value::Kind::none; }
  bool is_tensor() const { return value.kind == Value::Kind::tensor; }
  bool on_cpu() const { return !empty() && !(is_tensor() && value.tensor.location != Location::cpu); }
  bool on_gpu() const { return gpu.storage != nullptr; }
};

// Makes the slot's tensor readable in the other place too; nothing happens when it is. `name` is for messages.
Status bring_to_gpu(Slot& slot, std::string_view name);
// May suspend (jsepCopyAsync). Only ever called directly, all the way from
// ort_run_execute.
Status bring_to_cpu(Slot& slot, std::string_view name);

// A tensor's bytes as they lie on the GPU, for an upload; `size` in whole words.
Status bytes_for_gpu(const Tensor& tensor, std::string_view name, std::shared_ptr<Storage>& bytes, size_t& size);

// A new tensor on the GPU, freed with its last holder. Its buffer is a multiple of 16 bytes.
Status make_on_gpu(DType dtype, Dims dims, Tensor& out);

// A tensor's elements in the GPU's form (gpu_element_size), and back. Integers that do not fit are an error.
Status widen_for_gpu(const Tensor& tensor, std::string_view name, void* out);
void narrow_from_gpu(const void* in, DType dtype, int64_t count, void* out);
// Whether both forms are the same, so that no conversion is needed.
bool same_on_gpu(DType dtype);

// "float32[1,3,224]", "sequence of 2", "(omitted)".
std::string describe(const Slot* slot);

}  // namespace py_ort
