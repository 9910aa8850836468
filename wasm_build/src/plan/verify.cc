// Checks that the FlatBuffers verifier cannot make: indices, shapes and sizes are consistent. Later code relies on
// them.
#include <algorithm>
#include <bit>

#include "plan/element_forms.h"
#include "plan/plan.h"
#include "py_ort/tensor.h"

namespace py_ort {
namespace {

constexpr size_t kMaxNesting = 64;
constexpr size_t kMostProviders = 16;  // a place is a bit

bool known(DType dtype) { return dtype >= DType::MIN && dtype <= DType::MAX; }

// True if `bytes` is the size of such a tensor. dims: any vector of integers.
template <class DimsVector>
Status check_size(std::string_view what, std::string_view name, DType dtype, const DimsVector* dims, uint64_t bytes,
                  const auto* strings) {
  if (!known(dtype) || dtype == DType::undefined) return invalid_graph(what, " '", name, "' has no valid dtype");
  Dims shape;
  if (dims) shape.assign(dims->begin(), dims->end());
  for (int64_t d : shape)
    if (d < 0) return invalid_graph(what, " '", name, "' has the shape ", shape);
  const int64_t count = element_count(shape);
  const bool fits =
      dtype == DType::string_ ? count == (strings ? strings->size() : 0) : byte_size(dtype, count) == bytes;
  if (!fits) return invalid_graph(what, " '", name, "' of ", dtype_name(dtype), shape, " has ", bytes, " bytes");
  return {};
}

Status verify_providers(const gen::Plan& table) {
  if (!table.providers() || table.providers()->size() == 0 || table.providers()->size() > kMostProviders)
    return invalid_graph("the plan has no providers, or more than ", kMostProviders);
  for (const auto* provider : *table.providers()) {
    if (!provider->forms()) continue;
    for (const auto* form : *provider->forms())
      if (!known(form->dtype()) || !known(form->stored()) || !is_known_form(form->dtype(), form->stored()))
        return invalid_graph("provider '", provider->name()->string_view(), "' keeps a type in an unknown form");
  }
  for (const auto* graph : *table.graphs())
    if (graph->nodes())
      for (const auto* node : *graph->nodes())
        if (node->provider() >= table.providers()->size())
          return invalid_graph("a node (", node->op_type()->string_view(), ") is on provider ", node->provider(),
                               " of ", table.providers()->size());
  return {};
}

// On the heap, on a device, or on both.
Status verify_places(const gen::Plan& table, uint32_t places, std::string_view what, std::string_view name) {
  if (places != 0 && places >> table.providers()->size() == 0 && places - (places & kHeap) == device_of(places))
    return {};
  return invalid_graph(what, " '", name, "' has the places ", places, ", of ", table.providers()->size(),
                       " providers: it is on the heap, on one device, or on both");
}

bool has_form(const gen::Provider& provider, DType dtype) {
  if (provider.forms())
    for (const auto* form : *provider.forms())
      if (form->dtype() == dtype) return true;
  return false;
}

Status verify_weights(const gen::Plan& table) {
  const size_t values = table.values() ? table.values()->size() : 0;
  if (!table.weights()) return {};
  for (const auto* weight : *table.weights()) {
    if (weight->value() >= values) return invalid_graph("a weight names value ", weight->value(), " of ", values);
    const auto* value = table.values()->Get(weight->value());
    const auto name = value->name() ? value->name()->string_view() : std::string_view();
    PY_ORT_TRY(check_size("weight", name, weight->dtype(), weight->dims(), weight->size(), weight->strings()));
    if (value->dtype() != DType::undefined && value->dtype() != weight->dtype())
      return invalid_graph("weight '", name, "' is ", dtype_name(weight->dtype()), ", its value ",
                           dtype_name(value->dtype()));
    if (weight->offset() > table.weights_size() || weight->size() > table.weights_size() - weight->offset())
      return invalid_graph("weight '", name, "' lies outside the ", table.weights_size(), " bytes of weights");
    PY_ORT_TRY(verify_places(table, weight->places(), "weight", name));
    if (const uint32_t place = device_of(weight->places())) {
      const auto* provider = table.providers()->Get(static_cast<flatbuffers::uoffset_t>(std::countr_zero(place)));
      if (!has_form(*provider, weight->dtype()))
        return invalid_graph("weight '", name, "' cannot be on ", provider->name()->string_view(), ": ",
                             dtype_name(weight->dtype()), " has no form there");
    }
  }
  return {};
}

Status verify_attributes(const gen::Node& node) {
  if (!node.attributes() || node.attributes()->size() == 0) return {};
  const auto* items = node.attributes_nested_root()->items();
  if (!items) return {};
  for (const auto* item : *items)
    if (const auto* tensor = item->tensor())
      PY_ORT_TRY(check_size("attribute", item->name()->string_view(), tensor->dtype(), tensor->dims(),
                            tensor->data() ? tensor->data()->size() : 0, tensor->strings()));
  return {};
}

// Walks the graphs like the executor: a value is visible after it is made, in its graph and the graphs inside.
class ScopeCheck {
 public:
  explicit ScopeCheck(const Plan& plan)
      : plan_(plan), visible_(plan.value_count()), made_(plan.value_count()), entered_(plan.graphs().size()) {}

  Status run() {
    for (size_t i = 0; i < plan_.weight_count(); ++i)
      PY_ORT_TRY(make(static_cast<int32_t>(plan_.weight(i).value()), "weight"));
    PY_ORT_TRY(graph(0, 0));
    for (size_t i = 0; i < entered_.size(); ++i)
      if (!entered_[i]) return invalid_graph("graph ", i, " belongs to no node");
    return {};
  }

 private:
  std::string called(int32_t value) const { return to_text("value ", value, " '", plan_.value_name(value), "'"); }
  Status in_range(int32_t value, std::string_view where) const {
    if (value >= 0 && static_cast<size_t>(value) < visible_.size()) return {};
    return invalid_graph(where, " names value ", value, " of ", visible_.size());
  }
  Status make(int32_t value, std::string_view where) {
    PY_ORT_TRY(in_range(value, where));
    if (made_[static_cast<size_t>(value)]) return invalid_graph(where, " makes ", called(value), " a second time");
    made_[static_cast<size_t>(value)] = visible_[static_cast<size_t>(value)] = true;
    return {};
  }
  Status read(int32_t value, std::string_view where) const {
    PY_ORT_TRY(in_range(value, where));
    if (!visible_[static_cast<size_t>(value)])
      return invalid_graph(where, " reads ", called(value), " before it is made, or out of its scope");
    return {};
  }

  Status graph(uint32_t index, size_t depth) {
    if (index >= entered_.size()) return invalid_graph("a node names graph ", index, " of ", entered_.size());
    if (entered_[index] || depth > kMaxNesting)
      return invalid_graph("graph ", index, " is used twice, or nested too deep");
    entered_[index] = true;
    const PlanGraph& graph = plan_.graphs()[index];
    const std::string where = to_text("graph '", graph.name, "'");
    for (int32_t value : graph.inputs) PY_ORT_TRY(make(value, where));
    for (const PlanNode& node : graph.nodes) PY_ORT_TRY(this->node(node, depth));
    for (int32_t value : graph.outputs) PY_ORT_TRY(read(value, where));
    for (int32_t value : graph.inputs) visible_[static_cast<size_t>(value)] = false;
    for (const PlanNode& node : graph.nodes)
      for (int32_t value : node.outputs)
        if (value != kOmitted) visible_[static_cast<size_t>(value)] = false;
    return {};
  }

  Status node(const PlanNode& node, size_t depth) {
    const std::string where = to_text("node '", node.name, "' (", node.op_type, ")");
    for (auto use : node.uses)
      if (use > gen::InputUse::MAX) return invalid_graph(where, " has an unknown use of an input");
    for (int32_t value : node.inputs)
      if (value != kOmitted) PY_ORT_TRY(read(value, where));
    PY_ORT_TRY(verify_attributes(*node.table));
    for (const auto& [name, graph] : node.subgraphs) PY_ORT_TRY(this->graph(graph, depth + 1));
    PY_ORT_TRY(control_flow(node, where));
    for (int32_t value : node.outputs)
      if (value != kOmitted) PY_ORT_TRY(make(value, where));
    return {};
  }

  // The subgraphs of If, Loop, Scan and SequenceMap have as many inputs and outputs as the node requires.
  Status control_flow(const PlanNode& node, const std::string& where) const {
    const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
    if (node.form == Form::kernel) return {};
    if (node.form != Form::loop && std::count(node.inputs.begin(), node.inputs.end(), kOmitted) > 0)
      return invalid_graph(where, " lacks an input");
    if (node.form == Form::image_decoder)
      return inputs == 1 ? Status() : invalid_graph(where, " has ", inputs, " inputs");
    if (node.form == Form::if_) {
      if (inputs != 1) return invalid_graph(where, " has ", inputs, " inputs");
      PY_ORT_TRY(signature(node, where, "then_branch", 0, outputs));
      return signature(node, where, "else_branch", 0, outputs);
    }
    if (node.form == Form::loop) {
      if (inputs < 2 || outputs < inputs - 2)
        return invalid_graph(where, " has ", inputs, " inputs and ", outputs, " outputs");
      return signature(node, where, "body", inputs, outputs + 1);
    }
    return signature(node, where, "body", inputs, outputs);
  }
  Status signature(const PlanNode& node, const std::string& where, std::string_view attribute, size_t inputs,
                   size_t outputs) const {
    const uint32_t index = node.subgraph(attribute);
    if (index == 0) return invalid_graph(where, " has no subgraph '", attribute, "'");
    const PlanGraph& graph = plan_.graphs()[index];
    if (graph.inputs.size() == inputs && graph.outputs.size() == outputs) return {};
    return invalid_graph(where, "'s ", attribute, " has ", graph.inputs.size(), " inputs and ", graph.outputs.size(),
                         " outputs, not ", inputs, " and ", outputs);
  }

  const Plan& plan_;
  std::vector<bool> visible_, made_, entered_;
};

}  // namespace

Status verify_tables(const gen::Plan& table) {
  if (!table.graphs() || table.graphs()->size() == 0) return invalid_graph("the plan has no graph");
  if (table.values())
    for (const auto* value : *table.values()) {
      if (!known(value->dtype()) || value->kind() > gen::ValueKind::MAX)
        return invalid_graph("a value of the plan has an unknown type");
      if (value->dims())
        for (int32_t d : *value->dims())
          if (d < -1) return invalid_graph("a value of the plan has the dimension ", d);
    }
  const auto* inputs = table.graphs()->Get(0)->inputs();
  const auto* placement = table.input_placement();
  if (placement && placement->size() != (inputs ? inputs->size() : 0))
    return invalid_graph("input_placement and the inputs differ in number");
  PY_ORT_TRY(verify_providers(table));
  if (placement)
    for (const auto* input : *placement) PY_ORT_TRY(verify_places(table, input->places(), "an input", ""));
  return verify_weights(table);
}

Status verify_graphs(const Plan& plan) { return ScopeCheck(plan).run(); }

}  // namespace py_ort
