// A run that only brings the CPU's part of an earlier one up to date (ort_run_refresh).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ep/slot.h"

namespace py_ort {

class Run;

// Inputs of nodes on devices that may have changed, in the words of abi.h.
class Given {
 public:
  Status add(const PlanNode& node, uint32_t kernel, size_t input, const Slot& slot, std::string_view name);
  const uint32_t* words() const { return words_.data(); }

 private:
  std::vector<uint32_t> words_{0};              // the number of inputs, then each input
  std::vector<std::shared_ptr<Storage>> kept_;  // the storage to which the words point
};

// `possible`: false if the plan has control flow, random numbers, or a node that reads both feeds' values and a
// device's.
Status refresh_run(Run& run, Given& given, bool& possible);

}  // namespace py_ort
