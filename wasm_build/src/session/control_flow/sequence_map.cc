// SequenceMap: the body once per element of the first input; the others are sequences of the same length, or tensors.
#include "session/executor.h"

namespace py_ort {
namespace {

Slot empty_sequence(DType dtype) {
  Value sequence;
  sequence.kind = Value::Kind::sequence;
  sequence.items = std::make_shared<std::vector<Value>>();
  sequence.element_dtype = dtype;
  return Slot::of(std::move(sequence));
}

}  // namespace

Status run_sequence_map(Run& run, const PlanNode& node) {
  const PlanGraph& body = run.session().plan().graphs()[node.subgraph("body")];
  size_t length = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.inputs[k] == kOmitted) return runtime_error("input ", k, " is omitted");
    const Slot& input = run.slot(node.inputs[k]);
    if (input.value.kind != Value::Kind::sequence) {
      if (k == 0 || !input.is_tensor()) return runtime_error("input ", k, " is ", describe(&input), ", not a sequence");
      continue;
    }
    if (k == 0) length = input.value.items->size();
    if (input.value.items->size() != length)
      return runtime_error("the sequences differ in length: ", length, " and ", input.value.items->size());
  }

  std::vector<Slot> results;
  for (int32_t value : body.outputs) results.push_back(empty_sequence(run.session().plan().value(value).dtype()));
  for (size_t i = 0; i < length; ++i) {
    PY_ORT_TRY(keep_going(run));
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Slot& input = run.slot(node.inputs[k]);
      const bool listed = input.value.kind == Value::Kind::sequence;
      run.slot(body.inputs[k]) = listed ? Slot::of((*input.value.items)[i], input.varies) : input;
    }
    PY_ORT_TRY(run_graph(run, body));
    std::vector<Slot> made = take_outputs(run, body);
    for (size_t k = 0; k < made.size(); ++k) {
      PY_ORT_TRY(read_on_heap(run, made[k], run.name(body.outputs[k])));  // elements of a sequence live on the CPU
      if (!made[k].is_tensor())
        return runtime_error("output ", k, " of the body is ", describe(&made[k]), ", not a tensor");
      results[k].value.element_dtype = made[k].value.tensor.dtype;
      results[k].value.items->push_back(std::move(made[k].value));
    }
  }
  for (size_t k = 0; k < results.size(); ++k) put_output(run, node, k, std::move(results[k]));
  return {};
}

}  // namespace py_ort
