// Loop: trip count M, condition, carried values; the body gives the next condition, the next carried values, and scan outputs.
#include "core/control_flow/stack.h"
#include "core/executor.h"

namespace py_ort {
namespace {

template <class T>
Status scalar(T value, Slot& out) {
  Tensor tensor;
  PY_ORT_TRY(Tensor::make(dtype_of<T>, {}, tensor));
  *tensor.mutable_data<T>() = value;
  out = Slot::of(Value::of(std::move(tensor)), false);
  return {};
}

}  // namespace

Status run_loop(Run& run, const PlanNode& node) {
  const PlanGraph& body = run.session().plan().graphs()[node.subgraph("body")];
  const size_t carried_count = node.inputs.size() - 2;
  int64_t trips = INT64_MAX;
  bool condition = true;
  if (node.input(0) != kOmitted) PY_ORT_TRY(read_integer(run, run.slot(node.input(0)), run.name(node.input(0)), trips));
  if (node.input(1) != kOmitted) PY_ORT_TRY(read_condition(run, run.slot(node.input(1)), run.name(node.input(1)), condition));

  std::vector<Slot> carried;
  for (size_t i = 0; i < carried_count; ++i) carried.push_back(node.input(i + 2) == kOmitted ? Slot{} : run.slot(node.input(i + 2)));
  std::vector<std::vector<Slot>> scanned(node.outputs.size() - carried_count);

  for (int64_t i = 0; i < trips && condition; ++i) {
    PY_ORT_TRY(keep_going(run));
    PY_ORT_TRY(scalar<int64_t>(i, run.slot(body.inputs[0])));
    PY_ORT_TRY(scalar<bool>(true, run.slot(body.inputs[1])));
    for (size_t k = 0; k < carried_count; ++k) run.slot(body.inputs[k + 2]) = std::move(carried[k]);
    PY_ORT_TRY(run_graph(run, body));
    std::vector<Slot> made = take_outputs(run, body);
    PY_ORT_TRY(read_condition(run, made[0], run.name(body.outputs[0]), condition));
    for (size_t k = 0; k < carried_count; ++k) carried[k] = std::move(made[k + 1]);
    for (size_t k = 0; k < scanned.size(); ++k)
      if (node.outputs[carried_count + k] != kOmitted) scanned[k].push_back(std::move(made[1 + carried_count + k]));
  }

  for (size_t k = 0; k < carried_count; ++k) put_output(run, node, k, std::move(carried[k]));
  for (size_t k = 0; k < scanned.size(); ++k) {
    if (node.outputs[carried_count + k] == kOmitted) continue;
    Slot stacked;
    PY_ORT_TRY(stack(run, scanned[k], body.outputs[1 + carried_count + k], 0, false, stacked));
    put_output(run, node, carried_count + k, std::move(stacked));
  }
  return {};
}

}  // namespace py_ort
