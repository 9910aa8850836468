// The CPU provider: kernels of the registry, with the dtypes that they declare.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ep/slot.h"
#include "plan/plan.h"
#include "py_ort/kernel.h"

namespace py_ort {

// The dtypes that each input accepts, as bits by DType. The last entry applies to all further inputs; without an entry
// any dtype is accepted.
class InputTypes {
 public:
  // From KernelEntry::types. False if the text is misspelt.
  static bool parse(std::string_view text, InputTypes& out);
  bool accepts(size_t input, DType dtype) const;
  size_t size() const { return masks_.size(); }
  bool any(size_t input) const { return masks_[input] == kAny; }
  // "float32, float16"
  std::string accepted(size_t input) const;
  // True if the kernel reads only dtype and dims of the input.
  bool of_shape(size_t input) const { return of(shape_, input); }
  // True if the input must have the dtype of all such inputs.
  bool alike(size_t input) const { return of(alike_, input); }

 private:
  bool of(const std::vector<bool>& flags, size_t input) const {
    return !flags.empty() && flags[std::min(input, flags.size() - 1)];
  }
  static constexpr uint32_t kAny = UINT32_MAX;
  std::vector<uint32_t> masks_;
  std::vector<bool> shape_, alike_;
};

class CpuKernel {
 public:
  static Status make(const Plan& plan, const PlanNode& node, CpuKernel& out);
  // Checks the inputs' dtypes, and afterwards that the kernel made the requested outputs.
  // `slots`: of all values; `ending`: for each input, true if no later node needs it; `made`: by output.
  Status run(std::span<const Slot> slots, std::span<const uint8_t> ending, std::vector<Value>& made) const;

 private:
  template <class Work>
  Status work(Work work) const;
  Status check_type(size_t input, DType dtype) const;
  Status check_types(std::span<const Value* const> inputs) const;
  const PlanNode* node_ = nullptr;
  InputTypes types_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace py_ort
