#include "plan/plan.h"

#include <algorithm>
#include <array>

namespace py_ort {
namespace {

std::string_view text_of(const flatbuffers::String* text) { return text ? text->string_view() : std::string_view(); }

std::vector<int32_t> indices(const flatbuffers::Vector<int32_t>* list) {
  return list ? std::vector<int32_t>(list->begin(), list->end()) : std::vector<int32_t>();
}

Form form_of(std::string_view op_type, std::string_view domain) {
  if (!domain.empty() && domain != "ai.onnx") return Form::kernel;
  if (op_type == "If") return Form::if_;
  if (op_type == "Loop") return Form::loop;
  if (op_type == "Scan") return Form::scan;
  if (op_type == "SequenceMap") return Form::sequence_map;
  if (op_type == "ImageDecoder") return Form::image_decoder;
  return Form::kernel;
}

PlanNode node_of(const gen::Node& table, const std::vector<Provider>& providers) {
  PlanNode node;
  node.table = &table;
  node.name = text_of(table.name());
  node.op_type = text_of(table.op_type());
  node.domain = text_of(table.domain());
  if (node.domain == "ai.onnx") node.domain = {};
  node.origin = text_of(table.origin());
  node.provider = &providers[table.provider()];
  node.form = form_of(node.op_type, node.domain);
  node.inputs = indices(table.inputs());
  node.outputs = indices(table.outputs());
  node.uses.assign(node.inputs.size(), gen::InputUse::device);
  if (const auto* uses = table.uses())
    for (flatbuffers::uoffset_t i = 0; i < uses->size() && i < node.uses.size(); ++i)
      node.uses[i] = static_cast<gen::InputUse>(uses->Get(i));
  if (table.attributes() && table.attributes()->size() > 0) node.attributes = table.attributes_nested_root();
  if (table.subgraphs())
    for (const auto* subgraph : *table.subgraphs())
      node.subgraphs.emplace_back(text_of(subgraph->name()), subgraph->graph());
  return node;
}

}  // namespace

uint32_t PlanNode::subgraph(std::string_view attribute) const {
  for (const auto& [name, graph] : subgraphs)
    if (name == attribute) return graph;
  return 0;  // the main graph is not a subgraph
}

bool PlanNode::is_random() const {
  // A remaining Dropout is random.
  static constexpr std::array<std::string_view, 7> kRandom = {
      "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  return domain.empty() && std::find(kRandom.begin(), kRandom.end(), op_type) != kRandom.end();
}

void Plan::remove(const std::vector<bool>& nodes) {
  for (PlanGraph& graph : graphs_) std::erase_if(graph.nodes, [&](const PlanNode& node) { return nodes[node.index]; });
  find_lifetimes(graphs_);
}

std::string_view Plan::value_name(int32_t i) const {
  return i == kOmitted ? std::string_view("(omitted)") : text_of(value(i).name());
}

Status Plan::read(void* bytes, size_t size, Plan& out) {
  out.bytes_.reset(bytes);
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(bytes), size, /*max_depth=*/64, /*max_tables=*/10'000'000);
  if (!bytes || !gen::VerifyPlanBuffer(verifier))
    return invalid_graph("these ", size, " bytes are not a plan, or a damaged one");
  out.table_ = gen::GetPlan(bytes);
  constexpr auto kVersion = static_cast<uint32_t>(gen::PlanVersion::current);
  if (out.table_->version() != kVersion)
    return invalid_graph("the plan has version ", out.table_->version(), ", this core reads version ", kVersion,
                         ": rebuild the core (emsdk_scripts/build) or plan again with the py_ort it belongs to");
  PY_ORT_TRY(verify_tables(*out.table_));
  return out.decode();
}

Status Plan::decode() {
  for (const auto* table : *table_->providers()) {
    Provider provider;
    provider.index = static_cast<uint32_t>(providers_.size());
    provider.name = table->name()->string_view();
    if (table->forms())
      for (const auto* form : *table->forms()) provider.forms[static_cast<size_t>(form->dtype())] = form->stored();
    providers_.push_back(provider);
  }
  for (const auto* table : *table_->graphs()) {
    PlanGraph graph;
    graph.name = text_of(table->name());
    graph.inputs = indices(table->inputs());
    graph.outputs = indices(table->outputs());
    if (table->nodes())
      for (const auto* node : *table->nodes()) {
        graph.nodes.push_back(node_of(*node, providers_));
        graph.nodes.back().index = node_count_++;
      }
    graphs_.push_back(std::move(graph));
  }
  PY_ORT_TRY(verify_graphs(*this));
  find_lifetimes(graphs_);
  find_varying(*this, varying_);
  return {};
}

}  // namespace py_ort
