// A plan with its weights and kernels; shared by its runs.
#pragma once

#include <memory>
#include <vector>

#include "ep/operand_contracts.h"
#include "ep/slot.h"
#include "ep/cpu_kernels.h"
#include "plan/plan.h"

namespace py_ort {

// The place of an error, for ort_last_error.
struct Failure {
  Status status;
  const PlanNode* node = nullptr;
};

class Session {
 public:
  static Status create(void* plan, size_t size, std::shared_ptr<Session>& out);
  ~Session();

  const Plan& plan() const { return plan_; }
  bool prepared() const { return prepared_; }
  // True if the CPU kernel of a node has this property.
  bool has_kernel(bool KernelEntry::* property) const;
  // Null unless the weight is wanted on the heap, and there is memory for it.
  void* weight_bytes(size_t index);
  // Reads the bytes of another session's weight.
  Status share_weight(size_t index, const Session& owner, size_t other);
  Status weight_on_device(size_t index, uint32_t id);
  // Computes nodes that depend on weights only, and makes the kernels. `failed` is the node whose kernel could not be
  // made.
  Status prepare(const PlanNode*& failed);

  // The slots of weights and of values computed from them; all others are empty.
  const std::vector<Slot>& constants() const { return constants_; }
  const CpuKernel& cpu_kernel(const PlanNode& node) const { return cpu_kernels_[node.index]; }
  uint32_t device_kernel(const PlanNode& node) const { return device_kernels_[node.index]; }
  const OperandContract& contract(const PlanNode& node) const { return contracts_[node.index]; }

 private:
  Status make_weights();
  Status check_weights() const;
  Status make_kernel(const PlanNode& node);
  void compute_constants();
  bool compute(const PlanNode& node, size_t& growth);

  Plan plan_;
  std::vector<Slot> constants_;
  std::vector<CpuKernel> cpu_kernels_;
  // For nodes on devices, 0 for others; with the provider, for their release.
  std::vector<uint32_t> device_kernels_;
  std::vector<OperandContract> contracts_;
  bool prepared_ = false;
};

}  // namespace py_ort
