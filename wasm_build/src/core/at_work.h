// The CPU's kernel that is at work.
#pragma once

namespace py_ort {

struct PlanNode;

// Whose kernel is being made or at work, for a page to which a call of the core has thrown. Nothing suspends the core
// meanwhile, and no kernel runs another node's.
inline const PlanNode* node_at_work = nullptr;

}  // namespace py_ort
