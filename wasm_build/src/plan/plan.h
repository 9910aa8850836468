// A plan, verified and decoded once per session: the executor never meets an invalid index.
#pragma once

#include <bit>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/provider.h"
#include "py_ort/gen/plan_generated.h"
#include "py_ort/status.h"

namespace py_ort {

namespace gen = schema::gen;

inline constexpr int32_t kOmitted = -1;

// How the executor runs a node: with a kernel, or as a step of its own.
enum class Form : uint8_t { kernel, if_, loop, scan, sequence_map, image_decoder };

struct PlanNode {
  const gen::Node* table = nullptr;
  std::string_view name, op_type, domain, origin;
  const Provider* provider = nullptr;
  Form form = Form::kernel;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;     // kOmitted, too, for an output that no node reads
  std::vector<gen::InputUse> uses;  // one per input
  std::vector<int32_t> dying;       // values of the node's graph whose last use this is
  const gen::Attributes* attributes = nullptr;
  std::vector<std::pair<std::string_view, uint32_t>> subgraphs;
  uint32_t index = 0;  // among all nodes of the plan

  // Accepts kOmitted. The graph of a graph-valued attribute; the verifier has checked that control flow has its graphs.
  int32_t input(size_t i) const { return i < inputs.size() ? inputs[i] : kOmitted; }
  uint32_t subgraph(std::string_view attribute) const;
  // True if outputs differ from run to run, since they depend on more than constants.
  bool is_random() const;
  // For messages: the model's own nodes, if they are known.
  std::string_view known_as() const { return origin.empty() ? name : origin; }
};

struct PlanGraph {
  std::string_view name;
  std::vector<int32_t> inputs, outputs;
  std::vector<PlanNode> nodes;
  std::vector<int32_t> locals;  // all values made in this graph: its inputs and its nodes' outputs
};

class Plan {
 public:
  // Takes ownership of `bytes`, which are from malloc.
  static Status read(void* bytes, size_t size, Plan& out);

  const std::vector<PlanGraph>& graphs() const { return graphs_; }
  const PlanGraph& main() const { return graphs_.front(); }
  uint32_t node_count() const { return node_count_; }
  size_t value_count() const { return table_->values() ? table_->values()->size() : 0; }
  const gen::Value& value(int32_t i) const { return *table_->values()->Get(static_cast<flatbuffers::uoffset_t>(i)); }
  std::string_view value_name(int32_t i) const;
  // True if its contents or shape may differ between runs whose feeds have equal shapes.
  bool varies(int32_t i) const { return varying_[static_cast<size_t>(i)] != 0; }
  // Removes nodes, by their index among all nodes: their outputs are then available before a run, like weights.
  void remove(const std::vector<bool>& nodes);
  // The first one is the core's own.
  const std::vector<Provider>& providers() const { return providers_; }
  // The provider of a place, which is a bit in the places of a weight or an input.
  const Provider& provider_at(uint32_t place) const { return providers_[static_cast<size_t>(std::countr_zero(place))]; }
  size_t weight_count() const { return table_->weights() ? table_->weights()->size() : 0; }
  const gen::Weight& weight(size_t i) const { return *table_->weights()->Get(static_cast<flatbuffers::uoffset_t>(i)); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  Status decode();
  std::unique_ptr<void, Free> bytes_;
  const gen::Plan* table_ = nullptr;
  std::vector<Provider> providers_;
  std::vector<PlanGraph> graphs_;
  std::vector<uint8_t> varying_;  // by Plan.values
  uint32_t node_count_ = 0;
};

// Checks that all indices, shapes and sizes are consistent, and that each value is made once, before it is read
// (src/plan/verify.cc).
Status verify_tables(const gen::Plan& table);
Status verify_graphs(const Plan& plan);
// Recomputes `dying` and `locals`, and omits outputs that no node reads.
void find_lifetimes(std::vector<PlanGraph>& graphs);
// For each value: true if it varies (src/plan/varying.cc).
void find_varying(const Plan& plan, std::vector<uint8_t>& found);

}  // namespace py_ort
