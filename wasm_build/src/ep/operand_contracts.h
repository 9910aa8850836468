// The sizes that a node's operands must have, by py_ort/schema/operand_contracts.py. They are checked before a kernel
// of any provider runs, so that no kernel reads past the end of an input.
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
  OperandContract() = default;  // for an operator without a contract: all sizes fit
  explicit OperandContract(const PlanNode& node);

  // The sizes of each input; null if it is omitted or not a tensor. The core has one thread.
  Status check(std::span<const Dims* const> inputs) const;
  bool empty() const { return !contract_; }

 private:
  friend class ContractCheck;
  // True for the sizes that fitted last: most runs have the same.
  bool fits_as_last(std::span<const Dims* const> inputs) const;
  void remember(std::span<const Dims* const> inputs) const;
  const gen::ContractRow* contract_ = nullptr;
  std::vector<int64_t> attributes_;                  // integers
  std::vector<std::string_view> texts_;              // texts
  std::vector<std::pair<size_t, int64_t>> columns_;  // inputs, with the number of columns that are read
  mutable std::vector<int64_t> last_;                // for each input its rank and sizes, or -1 if it is omitted
};

// For a run's slots. Empty slots and those without tensors are skipped: the provider reports them.
Status check_operands(const PlanNode& node, const OperandContract& contract, std::span<const Slot> slots);

}  // namespace py_ort
