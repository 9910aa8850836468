// The sizes that a node's operands must have, by py_ort/schema/operand_contracts.py: held against them before a kernel
// of any provider runs, so that no kernel reads beyond an input.
#pragma once

#include <span>
#include <vector>

#include "ep/slot.h"
#include "py_ort/gen/operand_contracts.h"
#include "py_ort/status.h"
#include "py_ort/tensor.h"

namespace py_ort {

class OperandContract {
 public:
  OperandContract() = default;  // of an operator that has none: everything fits
  explicit OperandContract(const PlanNode& node);

  // By input, its sizes; null where it is omitted or no tensor. The core has one thread.
  Status check(std::span<const Dims* const> inputs) const;
  bool empty() const { return !contract_; }

 private:
  friend class ContractCheck;
  // Sizes that were found to fit last: most runs have the same.
  bool fits_as_last(std::span<const Dims* const> inputs) const;
  void remember(std::span<const Dims* const> inputs) const;
  const gen::ContractRow* contract_ = nullptr;
  std::vector<int64_t> attributes_;                  // those that are integers
  std::vector<std::string_view> texts_;              // those that are texts
  std::vector<std::pair<size_t, int64_t>> columns_;  // inputs of which so many columns are read
  mutable std::vector<int64_t> last_;                // of each input its rank and sizes, or -1 where it is omitted
};

// By the slots of a run; those that are empty or no tensors are the provider's to complain of.
Status check_operands(const PlanNode& node, const OperandContract& contract, std::span<const Slot> slots);

}  // namespace py_ort
