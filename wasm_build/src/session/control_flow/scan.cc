// Scan (as of opset 9): state values, and inputs sliced along their axes.
#include "session/control_flow/stack.h"
#include "session/executor.h"

namespace py_ort {
namespace {

// A list of axes or directions: element i, or its default.
struct Choices {
  Choices(const PlanNode& node, std::string_view attribute) : values(Attributes(node.attributes).integers(attribute)) {}
  int64_t at(size_t i) const { return i < values.size() ? values[i] : 0; }
  std::vector<int64_t> values;
};

}  // namespace

Status run_scan(Run& run, const PlanNode& node) {
  const PlanGraph& body = run.session().plan().graphs()[node.subgraph("body")];
  const int64_t declared = Attributes(node.attributes).integer("num_scan_inputs", 0);
  if (declared < 1 || declared > static_cast<int64_t>(node.inputs.size()))
    return invalid_graph("num_scan_inputs is ", declared, " of ", node.inputs.size(), " inputs");
  const auto scans = static_cast<size_t>(declared);
  const size_t states = node.inputs.size() - scans;
  if (node.outputs.size() < states)
    return invalid_graph("a Scan of ", states, " states has ", node.outputs.size(), " outputs");
  const Choices input_axes(node, "scan_input_axes"), input_directions(node, "scan_input_directions");
  const Choices output_axes(node, "scan_output_axes"), output_directions(node, "scan_output_directions");

  int64_t length = -1;
  std::vector<uint32_t> readers;
  for (size_t k = 0; k < scans; ++k) {
    const int32_t value = node.input(states + k);
    if (value == kOmitted || !run.slot(value).is_tensor()) return runtime_error("scan input ", k, " is no tensor");
    readers.push_back(readers_of(run.session().plan(), body, body.inputs[states + k]));
    PY_ORT_TRY(bring_to_readers(run, run.slot(value), run.name(value), readers[k]));
    const Tensor& tensor = run.slot(value).value.tensor;
    int64_t axis = input_axes.at(k);
    if (axis < -tensor.rank() || axis >= tensor.rank())
      return runtime_error("scan input ", k, " of shape ", tensor.dims, " has no axis ", axis);
    const int64_t here = tensor.dim(axis);
    if (length >= 0 && here != length) return runtime_error("scan inputs differ in length: ", length, " and ", here);
    length = here;
  }

  std::vector<Slot> state;
  for (size_t k = 0; k < states; ++k) state.push_back(node.input(k) == kOmitted ? Slot{} : run.slot(node.input(k)));
  std::vector<Stack> scanned;
  for (size_t k = 0; states + k < node.outputs.size(); ++k)
    scanned.emplace_back(run, body.outputs[states + k], output_axes.at(k), output_directions.at(k) != 0, length);
  for (int64_t i = 0; i < length; ++i) {
    PY_ORT_TRY(keep_going(run));
    for (size_t k = 0; k < states; ++k) run.slot(body.inputs[k]) = std::move(state[k]);
    for (size_t k = 0; k < scans; ++k) {
      const Slot& whole = run.slot(node.input(states + k));
      PY_ORT_TRY(slice(whole, input_axes.at(k), input_directions.at(k) ? length - 1 - i : i, readers[k],
                       run.slot(body.inputs[states + k])));
    }
    PY_ORT_TRY(run_graph(run, body));
    std::vector<Slot> made = take_outputs(run, body);
    for (size_t k = 0; k < states; ++k) state[k] = std::move(made[k]);
    for (size_t k = 0; k < scanned.size(); ++k)
      if (node.outputs[states + k] != kOmitted) PY_ORT_TRY(scanned[k].push(std::move(made[states + k])));
  }

  for (size_t k = 0; k < states; ++k) put_output(run, node, k, std::move(state[k]));
  for (size_t k = 0; k < scanned.size(); ++k) {
    if (node.outputs[states + k] == kOmitted) continue;
    Slot stacked;
    PY_ORT_TRY(scanned[k].finish(stacked));
    put_output(run, node, states + k, std::move(stacked));
  }
  return {};
}

}  // namespace py_ort
