// A node on the CPU provider: brings its inputs to the CPU, and runs its kernel.
#include <algorithm>
#include <vector>

#include "session/executor.h"
#include "ep/jsep.h"

namespace py_ort {
namespace {

// For each input: true if the node is its last reader, and reads it once.
std::vector<uint8_t> ending_inputs(const PlanNode& node) {
  std::vector<uint8_t> ending;
  ending.reserve(node.inputs.size());
  for (int32_t value : node.inputs)
    ending.push_back(std::find(node.dying.begin(), node.dying.end(), value) != node.dying.end() &&
                     std::count(node.inputs.begin(), node.inputs.end(), value) == 1);
  return ending;
}

}  // namespace

Status run_cpu_node(Run& run, const PlanNode& node) {
  if (node.is_random()) run.not_replayable();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kOmitted || node.uses[i] == gen::InputUse::shape) continue;
    Slot& slot = run.slot(node.inputs[i]);
    if (slot.empty()) return runtime_error("input ", i, " '", run.name(node.inputs[i]), "' has no value");
    PY_ORT_TRY(read_on_heap(run, slot, run.name(node.inputs[i])));
  }

  // No suspension below: pointers to slots stay valid.
  if (run.profiling()) run.ready_ms = jsep::now_ms();
  std::vector<Value> made;
  PY_ORT_TRY(run.session().cpu_kernel(node).run(run.slots(), ending_inputs(node), made));
  for (size_t i = 0; i < made.size(); ++i) {
    Slot slot = Slot::of(std::move(made[i]));
    if (slot.is_tensor() && slot.value.tensor.location == Location::device)
      slot.device = slot.value.tensor;  // a view of a shape input
    put_output(run, node, i, std::move(slot));
  }
  return {};
}

}  // namespace py_ort
