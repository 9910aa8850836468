#include "session/executor.h"

#include "ep/jsep.h"

namespace py_ort {
namespace {

// Rare enough to cost nothing, and often enough for a user who waits for a cancellation.
constexpr double kPauseEveryMs = 500;

Status step(Run& run, const PlanNode& node) {
  switch (node.form) {
    case Form::if_: return run_if(run, node);
    case Form::loop: return run_loop(run, node);
    case Form::scan: return run_scan(run, node);
    case Form::sequence_map: return run_sequence_map(run, node);
    case Form::image_decoder: return run_image_decoder(run, node);
    case Form::kernel: break;
  }
  PY_ORT_TRY(check_operands(node, run.session().contract(node), run.slots()));
  return node.provider->on_device() ? run_device_node(run, node) : run_cpu_node(run, node);
}

// The inputs are what a reader of an error needs most.
Status with_inputs(Run& run, const PlanNode& node, Status status) {
  if (status.code() == ErrorCode::cancelled) return status;
  std::string inputs;
  for (int32_t value : node.inputs)
    inputs += to_text(inputs.empty() ? "" : ", ",
                      value == kOmitted ? "(omitted)" : to_text(run.name(value), " ", describe(&run.slot(value))));
  return {status.code(), to_text(status.message(), " [inputs: ", inputs, "]")};
}

}  // namespace

Status run_graph(Run& run, const PlanGraph& graph) {
  for (const PlanNode& node : graph.nodes) {
    Status status = keep_going(run);
    const double began_ms = run.profiling() ? jsep::now_ms() : 0;
    if (status.ok()) status = step(run, node);
    // Control flow reads its inputs at several times; the nodes inside it have their own times.
    if (run.profiling())
      run.note_time(node, began_ms, node.form == Form::kernel ? run.ready_ms : began_ms, jsep::now_ms());
    if (!status.ok()) {
      if (run.failed) return status;
      run.failed = &node;
      return with_inputs(run, node, std::move(status));
    }
    for (int32_t value : node.dying) run.slot(value) = {};
  }
  return {};
}

Status keep_going(Run& run) {
  if (jsep::now_ms() - run.resumed_ms > kPauseEveryMs) {
    jsep::pause();
    run.resumed_ms = jsep::now_ms();
  }
  return run.cancelled() ? Status(ErrorCode::cancelled, "the run was cancelled") : Status();
}

void clear_graph(Run& run, const PlanGraph& graph) {
  for (int32_t value : graph.locals) run.slot(value) = {};
}

std::vector<Slot> take_outputs(Run& run, const PlanGraph& graph) {
  std::vector<Slot> outputs;
  outputs.reserve(graph.outputs.size());
  for (int32_t value : graph.outputs) outputs.push_back(run.slot(value));
  clear_graph(run, graph);
  return outputs;
}

void put_output(Run& run, const PlanNode& node, size_t i, Slot slot) {
  if (i >= node.outputs.size() || node.outputs[i] == kOmitted) return;
  // Nothing varies in an empty tensor; if its shape does, feeds were read on the CPU.
  const bool empty = slot.is_tensor() && slot.value.tensor.count() == 0;
  slot.varies = !empty && run.session().plan().varies(node.outputs[i]);
  run.slot(node.outputs[i]) = std::move(slot);
}

Status read_on_heap(Run& run, Slot& slot, std::string_view name) {
  if (slot.varies) run.not_replayable();
  return bring_to_heap(slot, name);
}

Status read_on_device(Run& run, Slot& slot, const Provider& provider, std::string_view name) {
  if (!slot.on(provider) && slot.varies) run.not_replayable();  // the upload would have to be repeated
  return bring_to_device(slot, provider, name);
}

Status read_condition(Run& run, Slot& slot, std::string_view name, bool& out) {
  PY_ORT_TRY(read_on_heap(run, slot, name));
  if (!slot.is_tensor() || slot.value.tensor.dtype != DType::bool_ || slot.value.tensor.count() != 1)
    return runtime_error("the condition '", name, "' is ", describe(&slot), ", not one bool");
  out = *slot.value.tensor.data<uint8_t>() != 0;
  return {};
}

Status read_integer(Run& run, Slot& slot, std::string_view name, int64_t& out) {
  PY_ORT_TRY(read_on_heap(run, slot, name));
  if (!slot.is_tensor() || slot.value.tensor.dtype != DType::int64 || slot.value.tensor.count() != 1)
    return runtime_error("'", name, "' is ", describe(&slot), ", not one int64");
  out = *slot.value.tensor.data<int64_t>();
  return {};
}

}  // namespace py_ort
