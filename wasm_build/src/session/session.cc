#include "session/session.h"

#include "ep/jsep.h"

namespace py_ort {
namespace {

Dims dims_of(const gen::Weight& weight) {
  return weight.dims() ? Dims(weight.dims()->begin(), weight.dims()->end()) : Dims();
}

// The core chooses kernel ids, and no two sessions share one.
uint32_t next_device_kernel() {
  static uint32_t last = 0;
  return ++last;
}

}  // namespace

Status Session::create(void* plan, size_t size, std::shared_ptr<Session>& out) {
  auto session = std::make_shared<Session>();
  PY_ORT_TRY(Plan::read(plan, size, session->plan_));
  PY_ORT_TRY(session->make_weights());
  out = std::move(session);
  return {};
}

Session::~Session() {
  for (const PlanGraph& graph : plan_.graphs())
    for (const PlanNode& node : graph.nodes)
      if (node.index < device_kernels_.size() && device_kernels_[node.index])
        jsep::release_kernel(*node.provider, device_kernels_[node.index]);
}

Status Session::make_weights() {
  constants_.resize(plan_.value_count());
  for (size_t i = 0; i < plan_.weight_count(); ++i) {
    const gen::Weight& weight = plan_.weight(i);
    Slot& slot = constants_[weight.value()];
    Tensor tensor{weight.dtype(), dims_of(weight), Location::none, nullptr};
    const bool strings = weight.dtype() == DType::string_;
    // Others get their memory from weight_bytes, or from another session.
    const bool on_heap = weight.places() & kHeap;
    if (strings || (on_heap && tensor.count() == 0)) PY_ORT_TRY(Tensor::make(weight.dtype(), dims_of(weight), tensor));
    if (strings) tensor.storage->freeze();
    if (on_heap) tensor.location = Location::cpu;
    if (strings && weight.strings())
      for (flatbuffers::uoffset_t k = 0; k < weight.strings()->size(); ++k)
        tensor.mutable_strings()[k] = weight.strings()->Get(k)->str();
    slot = Slot::of(Value::of(std::move(tensor)));
  }
  return {};
}

bool Session::has_kernel(bool KernelEntry::* property) const {
  for (const PlanGraph& graph : plan_.graphs())
    for (const PlanNode& node : graph.nodes) {
      if (node.form != Form::kernel || node.provider->on_device()) continue;
      const KernelEntry* entry = find_kernel(node.domain, node.op_type);
      if (entry && entry->*property) return true;
    }
  return false;
}

void* Session::weight_bytes(size_t index) {
  if (index >= plan_.weight_count()) return nullptr;
  const gen::Weight& weight = plan_.weight(index);
  if (!(weight.places() & kHeap) || weight.dtype() == DType::string_) return nullptr;
  Tensor& tensor = constants_[weight.value()].value.tensor;
  if (!tensor.storage) {
    tensor.storage = Storage::on_heap(tensor.size_in_bytes());
    if (!tensor.storage) return nullptr;
    tensor.storage->freeze();
  }
  return tensor.storage->data();
}

Status Session::share_weight(size_t index, const Session& owner, size_t other) {
  if (index >= plan_.weight_count() || other >= owner.plan_.weight_count())
    return invalid_argument("there is no weight ", index, " to share, or no ", other);
  Tensor& tensor = constants_[plan_.weight(index).value()].value.tensor;
  const Tensor& theirs = owner.constants_[owner.plan_.weight(other).value()].value.tensor;
  const bool same = theirs.storage && theirs.location == Location::cpu && theirs.dtype == tensor.dtype &&
                    theirs.size_in_bytes() == tensor.size_in_bytes();
  if (!(plan_.weight(index).places() & kHeap) || tensor.dtype == DType::string_ || !same)
    return invalid_argument("weight '", plan_.value_name(static_cast<int32_t>(plan_.weight(index).value())),
                            "' cannot be shared");
  tensor.storage = theirs.storage;
  return {};
}

Status Session::weight_on_device(size_t index, uint32_t id) {
  if (index >= plan_.weight_count())
    return invalid_argument("there is no weight ", index, " in this plan of ", plan_.weight_count());
  const gen::Weight& weight = plan_.weight(index);
  Slot& slot = constants_[weight.value()];
  const uint32_t place = device_of(weight.places());
  if (!place || id == 0)
    return invalid_argument("weight '", plan_.value_name(static_cast<int32_t>(weight.value())),
                            "' is not wanted on a device, or the id is 0");
  Tensor& tensor = slot.value.tensor;
  slot.device = {tensor.dtype, tensor.dims, Location::device,
                 Storage::on_device(plan_.provider_at(place), id, tensor.size_in_bytes(), nullptr)};
  if (!slot.on_heap()) tensor = slot.device;
  return {};
}

Status Session::check_weights() const {
  for (size_t i = 0; i < plan_.weight_count(); ++i) {
    const gen::Weight& weight = plan_.weight(i);
    const Slot& slot = constants_[weight.value()];
    if ((weight.places() & kHeap) && !slot.value.tensor.storage)
      return invalid_argument("weight '", plan_.value_name(static_cast<int32_t>(weight.value())),
                              "' was not given its bytes (ort_session_weight)");
    if (device_of(weight.places()) && !slot.provider())
      return invalid_argument("weight '", plan_.value_name(static_cast<int32_t>(weight.value())),
                              "' was not put on its device (ort_session_weight_on_device)");
  }
  return {};
}

Status Session::make_kernel(const PlanNode& node) {
  if (node.form != Form::kernel) return {};
  contracts_[node.index] = OperandContract(node);
  if (!node.provider->on_device()) return CpuKernel::make(plan_, node, cpu_kernels_[node.index]);
  const auto* attributes = node.table->attributes();
  const uint32_t id = next_device_kernel();
  PY_ORT_TRY(jsep::create_kernel(*node.provider, id, node.domain, node.op_type,
                                 attributes ? attributes->data() : nullptr, attributes ? attributes->size() : 0));
  device_kernels_[node.index] = id;
  return {};
}

Status Session::prepare(const PlanNode*& failed) {
  failed = nullptr;
  if (prepared_) return {};
  PY_ORT_TRY(check_weights());
  compute_constants();
  cpu_kernels_.resize(plan_.node_count());
  device_kernels_.resize(plan_.node_count());
  contracts_.resize(plan_.node_count());
  for (const PlanGraph& graph : plan_.graphs())
    for (const PlanNode& node : graph.nodes) {
      failed = &node;
      PY_ORT_TRY(make_kernel(node));
    }
  failed = nullptr;
  prepared_ = true;
  return {};
}

}  // namespace py_ort
