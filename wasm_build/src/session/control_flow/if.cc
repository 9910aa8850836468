// If: one condition, two graphs without inputs.
#include "session/executor.h"

namespace py_ort {

Status run_if(Run& run, const PlanNode& node) {
  bool condition = false;
  PY_ORT_TRY(read_condition(run, run.slot(node.input(0)), run.name(node.input(0)), condition));
  const PlanGraph& branch = run.session().plan().graphs()[node.subgraph(condition ? "then_branch" : "else_branch")];
  PY_ORT_TRY(run_graph(run, branch));
  std::vector<Slot> outputs = take_outputs(run, branch);
  for (size_t i = 0; i < outputs.size(); ++i) put_output(run, node, i, std::move(outputs[i]));
  return {};
}

}  // namespace py_ort
