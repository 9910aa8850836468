// A node on a device: brings its inputs to where it reads them, then lets the page resolve it (jsepRun).
#include "session/executor.h"
#include "ep/jsep.h"
#include "ep/jsep_call.h"

namespace py_ort {
namespace {

// The part that may suspend.
Status bring_inputs(Run& run, const PlanNode& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kOmitted) continue;
    Slot& slot = run.slot(node.inputs[i]);
    const auto name = run.name(node.inputs[i]);
    if (!slot.is_tensor())
      return runtime_error("input ", i, " '", name, "' is ", describe(&slot), ": ", node.provider->name,
                           " takes tensors only");
    if (node.uses[i] == gen::InputUse::host) {
      if (slot.value.tensor.dtype == DType::string_)
        return not_implemented("input ", i, " '", name, "' has strings: ", node.provider->name, " takes none");
      PY_ORT_TRY(read_on_heap(run, slot, name));
    } else if (node.uses[i] == gen::InputUse::device) {
      PY_ORT_TRY(read_on_device(run, slot, *node.provider, name));
    }
  }
  return {};
}

}  // namespace

Status run_device_node(Run& run, const PlanNode& node) {
  PY_ORT_TRY(bring_inputs(run, node));
  if (run.profiling()) run.ready_ms = jsep::now_ms();
  std::vector<Slot*> inputs;
  for (int32_t value : node.inputs) inputs.push_back(value == kOmitted ? nullptr : &run.slot(value));
  JsepCall call(run.session().plan(), node, inputs);
  PY_ORT_TRY(call.run(run.session().device_kernel(node)));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Tensor& made = call.outputs()[i];
    if (node.outputs[i] == kOmitted) continue;
    if (!made.storage)
      return {ErrorCode::fail, to_text("the kernel on ", node.provider->name, " did not make output ", i)};
    put_output(run, node, i, Slot::of_device(std::move(made)));
  }
  return {};
}

}  // namespace py_ort
