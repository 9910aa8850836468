// Finds the changes of an earlier run's uploads that a run's feeds cause. Runs the CPU's nodes that follow from feeds
// alone, and lists their results for nodes on devices instead of resolving these.
#include "session/refresh.h"

#include "session/executor.h"

namespace py_ort {
namespace {

// Values that may differ from run to run: feeds (also their shapes, if they stay on the CPU), and values made from
// them.
class Refresh {
 public:
  Refresh(Run& run, Given& given) : run_(run), given_(given), fed_(run.session().plan().value_count()) {
    for (int32_t value : run.session().plan().main().inputs) fed_[static_cast<size_t>(value)] = true;
  }

  Status walk(bool& possible) {
    possible = true;
    for (const PlanNode& node : run_.session().plan().main().nodes) {
      if (node.form != Form::kernel || node.is_random()) possible = false;
      if (possible) PY_ORT_TRY(node.provider->on_device() ? tell(node, possible) : step(node, possible));
      if (!possible) return {};
      for (int32_t value : node.dying) run_.slot(value) = {};
    }
    return {};
  }

 private:
  bool fed(int32_t value) const { return value != kOmitted && fed_[static_cast<size_t>(value)]; }

  void mark(const PlanNode& node, bool from_feeds) {
    for (int32_t value : node.outputs)
      if (value != kOmitted) fed_[static_cast<size_t>(value)] = from_feeds;
  }

  // A node on the CPU, if all its inputs are known. Shapes of devices' results are unchanged, or the recording is not
  // replayed: so are values that follow from these shapes alone, but not values that follow from feeds as well.
  Status step(const PlanNode& node, bool& possible) {
    bool missing = false, from_feeds = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kOmitted) continue;
      const Slot& slot = run_.slot(node.inputs[i]);
      const bool shape = node.uses[i] == gen::InputUse::shape, here = shape ? !slot.empty() : slot.on_heap();
      missing |= !here;
      from_feeds |= fed(node.inputs[i]) && (here || !shape);
    }
    if (missing) {
      possible = !from_feeds;
      return {};
    }
    mark(node, from_feeds);
    return run_cpu_node(run_, node);
  }

  Status tell(const PlanNode& node, bool& possible) {
    bool from_feeds = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!fed(node.inputs[i])) continue;
      const Slot& slot = run_.slot(node.inputs[i]);
      const gen::InputUse use = node.uses[i];
      // Contents that the page made from a feed: a view, for example.
      if (use == gen::InputUse::host && !slot.on_heap()) possible = false;
      if (!possible) return {};
      from_feeds |= use == gen::InputUse::device;
      // Feeds on the device are bound directly.
      if (slot.empty() || (use == gen::InputUse::device && slot.on(*node.provider))) continue;
      PY_ORT_TRY(given_.add(node, run_.session().device_kernel(node), i, slot, run_.name(node.inputs[i])));
    }
    mark(node, from_feeds);
    return {};
  }

  Run& run_;
  Given& given_;
  std::vector<uint8_t> fed_;
};

}  // namespace

Status Given::add(const PlanNode& node, uint32_t kernel, size_t input, const Slot& slot, std::string_view name) {
  const gen::InputUse use = node.uses[input];
  if (!slot.is_tensor()) return runtime_error("'", name, "' is ", describe(&slot), ", not a tensor");
  const Tensor& tensor = slot.value.tensor;
  Location location = Location::none;
  std::shared_ptr<Storage> bytes;
  size_t size = 0;
  if (use == gen::InputUse::host) {
    location = Location::cpu;
    bytes = tensor.storage;
    size = tensor.size_in_bytes();
  } else if (use == gen::InputUse::device) {
    location = Location::device;
    PY_ORT_TRY(bytes_for_device(tensor, *node.provider, name, bytes, size));
  }
  const auto address = bytes ? static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bytes->data())) : 0;
  for (size_t word : {static_cast<size_t>(kernel), input, static_cast<size_t>(tensor.dtype),
                      static_cast<size_t>(location), static_cast<size_t>(address), size, tensor.dims.size()})
    words_.push_back(static_cast<uint32_t>(word));
  for (int64_t d : tensor.dims) words_.push_back(static_cast<uint32_t>(d));
  kept_.push_back(std::move(bytes));
  ++words_.front();
  return {};
}

Status refresh_run(Run& run, Given& given, bool& possible) { return Refresh(run, given).walk(possible); }

}  // namespace py_ort
