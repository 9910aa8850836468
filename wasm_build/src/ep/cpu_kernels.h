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

// The dtypes that each input accepts, as bits by DType; the last entry stands for all further inputs, no entry for
// anything.
class InputTypes {
 public:
  // From KernelEntry::types. False: it is misspelt.
  static bool parse(std::string_view text, InputTypes& out);
  bool accepts(size_t input, DType dtype) const;
  size_t size() const { return masks_.size(); }
  bool any(size_t input) const { return masks_[input] == kAny; }
  // "float32, float16"
  std::string accepted(size_t input) const;
  // True: the kernel reads no more of it than dtype and dims.
  bool of_shape(size_t input) const { return of(shape_, input); }
  // True: it has the dtype that all such inputs have.
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
  // Checks the inputs' dtypes, and afterwards that the kernel made what it was asked for.
  // `slots`: of all values; `ending`: by input, whether nobody needs it afterwards; `made`: by output.
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
