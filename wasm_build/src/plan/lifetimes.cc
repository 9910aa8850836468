// A value's lifetime: it ends after the last node of its own graph that reads it, directly or in subgraphs.
#include <set>

#include "plan/plan.h"

namespace py_ort {
namespace {

class Lifetimes {
 public:
  explicit Lifetimes(std::vector<PlanGraph>& graphs) : graphs_(graphs) {}

  // Returns the values of outer graphs that the graph reads.
  std::set<int32_t> graph(uint32_t index) {
    PlanGraph& graph = graphs_[index];
    std::vector<std::set<int32_t>> reads;
    for (PlanNode& node : graph.nodes) {
      std::set<int32_t> of_node(node.inputs.begin(), node.inputs.end());
      for (const auto& [name, subgraph] : node.subgraphs) of_node.merge(this->graph(subgraph));
      of_node.erase(kOmitted);
      node.dying.clear();
      reads.push_back(std::move(of_node));
    }
    std::set<int32_t> all(graph.outputs.begin(), graph.outputs.end());
    for (const auto& of_node : reads) all.insert(of_node.begin(), of_node.end());

    std::set<int32_t> locals(graph.inputs.begin(), graph.inputs.end());
    for (PlanNode& node : graph.nodes)
      for (int32_t& value : node.outputs) {
        if (!all.contains(value)) value = kOmitted;
        if (value != kOmitted) locals.insert(value);
      }
    graph.locals.assign(locals.begin(), locals.end());

    std::set<int32_t> alive(graph.outputs.begin(), graph.outputs.end());
    for (size_t i = graph.nodes.size(); i-- > 0;)
      for (int32_t value : reads[i])
        if (locals.contains(value) && alive.insert(value).second) graph.nodes[i].dying.push_back(value);

    std::set<int32_t> captured;
    for (int32_t value : all)
      if (!locals.contains(value)) captured.insert(value);
    return captured;
  }

 private:
  std::vector<PlanGraph>& graphs_;
};

}  // namespace

void find_lifetimes(std::vector<PlanGraph>& graphs) { Lifetimes(graphs).graph(0); }

}  // namespace py_ort
