// The running CPU kernel.
#pragma once

namespace py_ort {

struct PlanNode;

// The node whose kernel is being made or is running, for a page to which a call of the core has thrown. Nothing
// suspends the core meanwhile, and no kernel runs another node's.
inline const PlanNode* node_at_work = nullptr;

}  // namespace py_ort
