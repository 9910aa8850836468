#include "ep/cpu_kernels.h"

#include "core/running_kernel.h"

namespace py_ort {
namespace {

bool dtype_named(std::string_view name, DType& out) {
  for (int i = 1; i <= static_cast<int>(DType::MAX); ++i)
    if (name == dtype_name(static_cast<DType>(i))) {
      out = static_cast<DType>(i);
      return true;
    }
  return false;
}

// Splits `text` at each `separator` and calls f with the parts; false as soon as f returns false.
template <class F>
bool each_part(std::string_view text, char separator, F f) {
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (!f(text.substr(start, end - start))) return false;
    start = end + 1;
  }
  return true;
}

std::string full_name(const PlanNode& node) {
  return to_text(node.domain.empty() ? "ai.onnx" : node.domain, "::", node.op_type);
}

}  // namespace

bool InputTypes::parse(std::string_view text, InputTypes& out) {
  out.masks_.clear();
  out.shape_.clear();
  out.alike_.clear();
  if (text.empty()) return true;
  return each_part(text, ';', [&](std::string_view input) {
    const bool shape = input.starts_with('~'), alike = input.starts_with('=');
    if (shape || alike) input.remove_prefix(1);
    out.shape_.push_back(shape);
    out.alike_.push_back(alike);
    uint32_t mask = input == "*" ? kAny : 0;
    const bool fine = mask || each_part(input, ',', [&](std::string_view name) {
      DType dtype;
      if (!dtype_named(name, dtype)) return false;
      mask |= 1u << static_cast<int>(dtype);
      return true;
    });
    out.masks_.push_back(mask);
    return fine;
  });
}

bool InputTypes::accepts(size_t input, DType dtype) const {
  if (masks_.empty()) return true;
  return masks_[std::min(input, masks_.size() - 1)] >> static_cast<int>(dtype) & 1;
}

std::string InputTypes::accepted(size_t input) const {
  std::string out;
  for (int i = 1; i <= static_cast<int>(DType::MAX); ++i)
    if (accepts(input, static_cast<DType>(i)))
      out += to_text(out.empty() ? "" : ", ", dtype_name(static_cast<DType>(i)));
  return out;
}

Status CpuKernel::make(const Plan& plan, const PlanNode& node, CpuKernel& out) {
  const KernelEntry* entry = find_kernel(node.domain, node.op_type);
  if (!entry) {
    std::string types;
    for (int32_t value : node.inputs)
      types +=
          to_text(types.empty() ? "" : ", ", value == kOmitted ? "(omitted)" : dtype_name(plan.value(value).dtype()));
    return not_implemented("the CPU provider has no kernel for ", full_name(node), " (inputs: ", types, ")");
  }
  out.node_ = &node;
  if (!InputTypes::parse(entry->types, out.types_))
    return {ErrorCode::fail, to_text("the CPU kernel of ", full_name(node), " declares bad types: ", entry->types)};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.uses[i] == gen::InputUse::shape && !out.types_.of_shape(i))
      return invalid_graph(full_name(node), " reads more than the shape of input ", i);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kOmitted && plan.value(node.inputs[i]).kind() == gen::ValueKind::tensor)
      PY_ORT_TRY(out.check_type(i, plan.value(node.inputs[i]).dtype()));

  KernelInfo info{
      node.op_type,       node.domain,         node.name, node.table->since_version(), Attributes(node.attributes),
      node.inputs.size(), node.outputs.size(), {}};
  for (int32_t value : node.outputs) info.wanted_outputs.push_back(value != kOmitted);
  return out.work([&] { return entry->make(info, out.kernel_); });
}

// The one place that catches: kernels allocate memory besides their tensors (tables, strings) by `new`, and release it
// on the way here.
template <class Work>
Status CpuKernel::work(Work work) const {
  node_at_work = node_;
  try {
    Status status = work();
    node_at_work = nullptr;
    return status;
  } catch (const MissingInput&) {
    node_at_work = nullptr;
    return invalid_graph(full_name(*node_), " lacks an input that it reads");
  } catch (...) {
    node_at_work = nullptr;  // first: the message about it may need the reserve
    return out_of_memory("no memory for the tables or texts of ", full_name(*node_));
  }
}

Status CpuKernel::check_type(size_t input, DType dtype) const {
  if (dtype == DType::undefined || types_.accepts(input, dtype)) return {};
  return not_implemented("the CPU kernel of ", full_name(*node_), " takes no ", dtype_name(dtype), " as input ", input,
                         ", only ", types_.accepted(input));
}

Status CpuKernel::check_types(std::span<const Value* const> inputs) const {
  DType common = DType::undefined;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->kind != Value::Kind::tensor) continue;
    const DType dtype = inputs[i]->tensor.dtype;
    PY_ORT_TRY(check_type(i, dtype));
    if (!types_.alike(i)) continue;
    if (common == DType::undefined) common = dtype;
    if (dtype != common)
      return invalid_graph(full_name(*node_), " is of ", dtype_name(common), ", but input ", i, " is ",
                           dtype_name(dtype));
  }
  return {};
}

Status CpuKernel::run(std::span<const Slot> slots, std::span<const uint8_t> ending, std::vector<Value>& made) const {
  std::vector<const Value*> inputs;
  inputs.reserve(node_->inputs.size());
  for (int32_t value : node_->inputs)
    inputs.push_back(value == kOmitted || slots[value].empty() ? nullptr : &slots[value].value);
  made.resize(node_->outputs.size());
  std::vector<Value*> outputs;
  outputs.reserve(made.size());
  for (size_t i = 0; i < made.size(); ++i) outputs.push_back(node_->outputs[i] == kOmitted ? nullptr : &made[i]);
  PY_ORT_TRY(check_types(inputs));
  KernelContext context(inputs, outputs, ending);
  PY_ORT_TRY(work([&] { return kernel_->run(context); }));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] && outputs[i]->kind == Value::Kind::none)
      return invalid_graph("the CPU kernel of ", full_name(*node_), " did not make output ", i);
  return {};
}

}  // namespace py_ort
