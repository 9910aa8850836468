// Computes nodes that depend only on weights when a session is made, in bodies too: runs find the results like weights.
// Only nodes of the CPU provider, without randomness or control flow.
#include <algorithm>

#include "session/session.h"

namespace py_ort {
namespace {

// The limit of the memory of all such results of a session, beyond that of the weights from which they are made.
constexpr size_t kMostGrowth = size_t{64} << 20;

bool is_constant(const PlanNode& node, const std::vector<Slot>& constants) {
  if (node.form != Form::kernel || node.provider->on_device() || node.is_random()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kOmitted) continue;
    const Slot& slot = constants[node.inputs[i]];
    if (node.uses[i] == gen::InputUse::shape ? slot.empty() : !slot.on_heap()) return false;
  }
  return true;
}

// float16 to float32 does not count as growth: kernels that read the narrow weights would keep the same copies.
bool is_widening(const PlanNode& node, const std::vector<Slot>& constants) {
  if (node.op_type != "Cast") return false;
  const Value& from = constants[node.input(0)].value;
  const DType dtype = from.kind == Value::Kind::tensor ? from.tensor.dtype : DType::undefined;
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

}  // namespace

// A node that fails, or makes too much, is left to the runs, which report the error.
bool Session::compute(const PlanNode& node, size_t& growth) {
  CpuKernel kernel;
  std::vector<Value> made;
  if (!check_operands(node, OperandContract(node), constants_).ok() || !CpuKernel::make(plan_, node, kernel).ok() ||
      !kernel.run(constants_, {}, made).ok())
    return false;
  size_t before = 0, after = 0;
  for (int32_t value : node.inputs)
    if (value != kOmitted && constants_[value].on_heap() && constants_[value].is_tensor())
      before += constants_[value].value.tensor.size_in_bytes();
  for (const Value& value : made) {
    if (value.kind == Value::Kind::none) continue;  // no node reads it
    if (value.kind != Value::Kind::tensor || value.tensor.location != Location::cpu) return false;
    after += value.tensor.size_in_bytes();
  }
  const size_t added = is_widening(node, constants_) ? 0 : after - std::min(before, after);
  if (added > kMostGrowth - growth) return false;
  growth += added;
  for (size_t i = 0; i < made.size(); ++i) {
    if (node.outputs[i] == kOmitted) continue;
    made[i].tensor.storage->freeze();
    constants_[node.outputs[i]] = Slot::of(std::move(made[i]));
  }
  return true;
}

void Session::compute_constants() {
  std::vector<bool> done(plan_.node_count());
  std::vector<int32_t> results;
  size_t growth = 0;
  for (const PlanGraph& graph : plan_.graphs())
    for (const PlanNode& node : graph.nodes)
      if (is_constant(node, constants_) && compute(node, growth)) {
        done[node.index] = true;
        results.insert(results.end(), node.outputs.begin(), node.outputs.end());
      }
  if (results.empty()) return;
  plan_.remove(done);
  std::vector<bool> read(plan_.value_count());
  const auto note = [&](const std::vector<int32_t>& values) {
    for (int32_t value : values)
      if (value != kOmitted) read[value] = true;
  };
  for (const PlanGraph& graph : plan_.graphs()) {
    note(graph.outputs);
    for (const PlanNode& node : graph.nodes) note(node.inputs);
  }
  for (int32_t value : results)
    if (value != kOmitted && !read[value]) constants_[value] = {};
}

}  // namespace py_ort
