// Optional, OptionalGetElement, OptionalHasElement. A tensor or a sequence counts as an optional with an element.
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

// Null without an element.
const Value* element_of(const Value* value) {
  if (!value || value->kind == Value::Kind::none) return nullptr;
  if (value->kind != Value::Kind::optional) return value;
  return value->items && !value->items->empty() ? &value->items->front() : nullptr;
}

struct Optional {
  Status operator()(KernelContext& context) const {
    Value value;
    value.kind = Value::Kind::optional;
    value.items = std::make_shared<std::vector<Value>>();
    if (const Value* element = element_of(context.input_value(0))) value.items->push_back(*element);
    context.output_value(0, std::move(value));
    return {};
  }
};

struct OptionalGetElement {
  Status operator()(KernelContext& context) const {
    const Value* element = element_of(context.input_value(0));
    PY_ORT_ENSURE(element, "OptionalGetElement of an optional without an element");
    context.output_value(0, *element);
    return {};
  }
};

struct OptionalHasElement {
  Status operator()(KernelContext& context) const {
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::bool_, {}, out));
    *out->mutable_data<uint8_t>() = element_of(context.input_value(0)) != nullptr;
    return {};
  }
};

PY_ORT_KERNEL("", "Optional", "*", Optional);
PY_ORT_KERNEL("", "OptionalGetElement", "*", OptionalGetElement);
PY_ORT_KERNEL("", "OptionalHasElement", "*", OptionalHasElement);

}  // namespace
}  // namespace py_ort
