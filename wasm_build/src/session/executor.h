// The walk over a plan's nodes.
//
// jsepCopyAsync and decodeImage suspend the core in the middle of the walk. Asyncify instruments every function that
// may then be on the stack. These few therefore call each other directly: ort_run_execute, Run::execute, run_graph,
// keep_going, the steps below, bring_to_heap. No virtual function and no function pointer may lead back here.
#pragma once

#include "session/run.h"

namespace py_ort {

// Runs the nodes of a graph whose inputs are in their slots. The caller takes its outputs, then calls clear_graph.
Status run_graph(Run& run, const PlanGraph& graph);
void clear_graph(Run& run, const PlanGraph& graph);

// --- the steps, by provider and form
Status run_cpu_node(Run& run, const PlanNode& node);
Status run_device_node(Run& run, const PlanNode& node);
Status run_if(Run& run, const PlanNode& node);
Status run_loop(Run& run, const PlanNode& node);
Status run_scan(Run& run, const PlanNode& node);
Status run_sequence_map(Run& run, const PlanNode& node);
Status run_image_decoder(Run& run, const PlanNode& node);

// A step that is not control flow is in the manifest, like a kernel: PY_ORT_STEP("", "ImageDecoder", "uint8").
#define PY_ORT_STEP(domain, op_type, types) \
  static const ::py_ort::detail::Registration step_registration({domain, op_type, types, nullptr, false})

// --- for the steps

// Called before each node and each iteration. A cancelled run fails. A long run regularly lets the page handle its
// messages, which may include the cancellation. May suspend.
Status keep_going(Run& run);
// A kernel of the core will read the contents of this value.
Status read_on_heap(Run& run, Slot& slot, std::string_view name);
// A kernel on the provider's device will read them.
Status read_on_device(Run& run, Slot& slot, const Provider& provider, std::string_view name);
// A scalar that decides how the run continues.
Status read_condition(Run& run, Slot& slot, std::string_view name, bool& out);
Status read_integer(Run& run, Slot& slot, std::string_view name, int64_t& out);
// Moves a graph's outputs, in order, out of the slots.
std::vector<Slot> take_outputs(Run& run, const PlanGraph& graph);
// Sets a node's output; drops the value if the output is unwanted.
void put_output(Run& run, const PlanNode& node, size_t i, Slot slot);

}  // namespace py_ort
