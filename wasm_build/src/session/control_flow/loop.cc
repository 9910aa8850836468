// Loop: trip count M, condition, carried values; the body returns the next condition, the next carried values, and scan
// outputs.
#include <algorithm>

#include "session/control_flow/stack.h"
#include "session/executor.h"

namespace py_ort {
namespace {

template <class T>
Status scalar(T value, Slot& out) {
  Tensor tensor;
  PY_ORT_TRY(Tensor::make(dtype_of<T>, {}, tensor));
  *tensor.mutable_data<T>() = value;
  out = Slot::of(Value::of(std::move(tensor)));
  return {};
}

// True if the body's condition always is its input, or a true constant: the trip count alone decides.
bool always_goes_on(const Run& run, const PlanGraph& body) {
  int32_t value = body.outputs[0];
  for (size_t i = body.nodes.size(); i-- > 0;)
    if (const PlanNode& node = body.nodes[i];
        node.op_type == "Identity" && !node.outputs.empty() && node.outputs[0] == value)
      value = node.input(0);
  if (value == body.inputs[1]) return true;
  const Slot& constant = run.session().constants()[static_cast<size_t>(value)];
  return constant.is_tensor() && constant.on_heap() && constant.value.tensor.dtype == DType::bool_ &&
         constant.value.tensor.count() == 1 && *constant.value.tensor.data<uint8_t>();
}

// The most steps on devices of a loop that only the trip count ends: recording this many takes minutes, and gigabytes.
constexpr int64_t kMostSteps = 1 << 21;

Status ends(const PlanGraph& body, int64_t trips) {
  const int64_t steps = std::count_if(body.nodes.begin(), body.nodes.end(),
                                      [](const PlanNode& node) { return node.provider->on_device(); });
  if (steps == 0 || trips <= kMostSteps / steps) return {};
  return runtime_error("a loop of ", trips, " trips with ", steps, " nodes on a device would not end: more than ",
                       kMostSteps, " steps; place these nodes on the CPU, or make fewer trips");
}

}  // namespace

Status run_loop(Run& run, const PlanNode& node) {
  const PlanGraph& body = run.session().plan().graphs()[node.subgraph("body")];
  const size_t carried_count = node.inputs.size() - 2;
  int64_t trips = INT64_MAX;
  bool condition = true;
  if (node.input(0) != kOmitted) PY_ORT_TRY(read_integer(run, run.slot(node.input(0)), run.name(node.input(0)), trips));
  if (node.input(1) != kOmitted)
    PY_ORT_TRY(read_condition(run, run.slot(node.input(1)), run.name(node.input(1)), condition));

  std::vector<Slot> carried;
  for (size_t i = 0; i < carried_count; ++i)
    carried.push_back(node.input(i + 2) == kOmitted ? Slot{} : run.slot(node.input(i + 2)));
  const bool always = always_goes_on(run, body), counted = always && trips != INT64_MAX;
  if (always && condition) PY_ORT_TRY(ends(body, trips));
  std::vector<Stack> scanned;
  for (size_t k = 1 + carried_count; k < body.outputs.size(); ++k)
    scanned.emplace_back(run, body.outputs[k], 0, false, counted && condition ? std::max<int64_t>(trips, 0) : -1);
  const auto wanted = [&](size_t k) { return node.outputs[carried_count + k] != kOmitted; };

  for (int64_t i = 0; i < trips && condition; ++i) {
    PY_ORT_TRY(keep_going(run));
    PY_ORT_TRY(scalar<int64_t>(i, run.slot(body.inputs[0])));
    PY_ORT_TRY(scalar<bool>(true, run.slot(body.inputs[1])));
    for (size_t k = 0; k < carried_count; ++k) run.slot(body.inputs[k + 2]) = std::move(carried[k]);
    PY_ORT_TRY(run_graph(run, body));
    std::vector<Slot> made = take_outputs(run, body);
    // After the last iteration nothing depends on it: it may stay on its device.
    if (!counted && i + 1 < trips) PY_ORT_TRY(read_condition(run, made[0], run.name(body.outputs[0]), condition));
    for (size_t k = 0; k < carried_count; ++k) carried[k] = std::move(made[k + 1]);
    for (size_t k = 0; k < scanned.size(); ++k)
      if (wanted(k)) PY_ORT_TRY(scanned[k].push(std::move(made[1 + carried_count + k])));
  }

  for (size_t k = 0; k < carried_count; ++k) put_output(run, node, k, std::move(carried[k]));
  for (size_t k = 0; k < scanned.size(); ++k) {
    if (!wanted(k)) continue;
    Slot stacked;
    PY_ORT_TRY(scanned[k].finish(stacked));
    put_output(run, node, carried_count + k, std::move(stacked));
  }
  return {};
}

}  // namespace py_ort
