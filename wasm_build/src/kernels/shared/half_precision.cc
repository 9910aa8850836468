#include "kernels/shared/half_precision.h"

#include <algorithm>

#include "kernels/shared/lanes.h"

namespace py_ort {

Status WideInputs::run(KernelContext& context, const void* kernel, Run run, bool (*narrowed)(size_t)) const {
  DType half = DType::undefined;
  for (size_t i = 0; i < context.input_count() && half == DType::undefined; ++i)
    if (const Tensor* input = context.input(i); input && is_half(input->dtype)) half = input->dtype;
  if (half == DType::undefined) return run(kernel, context);

  std::vector<Value> inputs(context.input_count()), outputs(context.output_count());
  std::vector<const Value*> input_pointers(inputs.size());
  std::vector<Value*> output_pointers(outputs.size());
  wide_.resize(std::max(wide_.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_pointers[i] = context.input_value(i);
    const Tensor* input = context.input(i);
    if (!input || !is_half(input->dtype)) continue;
    Tensor wide;
    if (input->storage->constant()) {
      const Tensor* kept;
      PY_ORT_TRY(wide_[i].get(*input, kept, [&](Tensor& out) -> Status {
        PY_ORT_TRY(cast(*input, DType::float32, out));
        out.storage->freeze();
        return {};
      }));
      wide = *kept;
    } else {
      PY_ORT_TRY(cast(*input, DType::float32, wide));
    }
    inputs[i] = Value::of(std::move(wide));
    input_pointers[i] = &inputs[i];
  }
  for (size_t i = 0; i < outputs.size(); ++i) output_pointers[i] = context.wants(i) ? &outputs[i] : nullptr;
  KernelContext inner(input_pointers, output_pointers);
  PY_ORT_TRY(run(kernel, inner));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!context.wants(i)) continue;
    if (narrowed(i) && outputs[i].kind == Value::Kind::tensor && outputs[i].tensor.dtype == DType::float32) {
      Tensor narrow;
      PY_ORT_TRY(cast(outputs[i].tensor, half, narrow));
      context.output(i, std::move(narrow));
    } else {
      context.output_value(i, std::move(outputs[i]));
    }
  }
  return {};
}

}  // namespace py_ort
