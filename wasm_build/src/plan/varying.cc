// Finds values that may differ between runs whose feeds have equal shapes: those that depend on the contents of feeds,
// or on randomness. A recording keeps only values proven not to differ.
#include <algorithm>
#include <span>

#include "plan/plan.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

constexpr std::string_view kBranches[] = {"then_branch", "else_branch"}, kBody[] = {"body"};
constexpr uint8_t kContents = 1, kShape = 2, kBoth = 3;

class Varying {
 public:
  Varying(const Plan& plan, std::vector<uint8_t>& found) : plan_(plan), found_(found) {
    found_.assign(plan.value_count(), 0);
    // The shapes of feeds, and the lengths of sequences, are equal in all runs of a recording.
    for (int32_t value : plan.main().inputs) add(value, kContents);
    do {
      changed_ = false;
      for (const PlanGraph& graph : plan.graphs())
        for (const PlanNode& node : graph.nodes) {
          if (node.form == Form::kernel || node.form == Form::image_decoder) kernel(node);
          else control(node);
        }
    } while (changed_);
  }

 private:
  uint8_t of(int32_t value) const { return value == kOmitted ? 0 : found_[static_cast<size_t>(value)]; }

  void add(int32_t value, uint8_t more) {
    if (value == kOmitted || (of(value) | more) == of(value)) return;
    found_[static_cast<size_t>(value)] |= more;
    changed_ = true;
  }

  // Shapes follow from shapes and from inputs read on the CPU; a device's results do not affect them.
  void kernel(const PlanNode& node) {
    uint8_t made = node.is_random() ? kContents : 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const uint8_t input = of(node.inputs[i]);
      const gen::InputUse use = node.uses[i];
      if (input & kShape) made = kBoth;
      if (!(input & kContents) || use == gen::InputUse::shape) continue;
      made |= node.provider->on_device() && use == gen::InputUse::device ? kContents : kBoth;
    }
    for (int32_t value : node.outputs) add(value, made);
  }

  // The results of an inner graph vary with the inputs that select the graph, and the number of its runs.
  void control(const PlanNode& node) {
    const bool loop = node.form == Form::loop, branches = node.form == Form::if_;
    const size_t deciding = loop ? 2 : branches ? 1 : 0, first = loop ? 1 : 0;
    const size_t carried = states_of(node, deciding);
    uint8_t decided = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (of(node.inputs[i]) & (i < deciding ? kContents : loop ? 0 : kShape)) decided = kBoth;
    for (std::string_view attribute : branches ? std::span<const std::string_view>(kBranches) : kBody) {
      const PlanGraph& body = plan_.graphs()[node.subgraph(attribute)];
      if (loop && (of(body.outputs[0]) & kContents)) decided = kBoth;
      for (size_t i = deciding; i < node.inputs.size(); ++i) add(body.inputs[i], of(node.inputs[i]));
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const uint8_t made = of(body.outputs[first + k]);
        add(node.outputs[k], made);
        if (k >= carried) continue;
        add(body.inputs[deciding + k], made);
        add(node.outputs[k], of(node.inputs[deciding + k]));  // after zero iterations
      }
    }
    for (int32_t value : node.outputs) add(value, decided);
  }

  static size_t states_of(const PlanNode& node, size_t deciding) {
    if (node.form == Form::loop) return node.inputs.size() - deciding;
    if (node.form != Form::scan) return 0;
    const int64_t scans = Attributes(node.attributes).integer("num_scan_inputs", 0);
    const auto inputs = static_cast<int64_t>(node.inputs.size());
    return static_cast<size_t>(inputs - std::clamp<int64_t>(scans, 0, inputs));
  }

  const Plan& plan_;
  std::vector<uint8_t>& found_;
  bool changed_ = false;
};

}  // namespace

void find_varying(const Plan& plan, std::vector<uint8_t>& found) { Varying(plan, found); }

}  // namespace py_ort
