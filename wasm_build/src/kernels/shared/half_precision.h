// Kernels written for float32 that also take float16 and bfloat16: widened before, narrowed after.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/shared/derived.h"
#include "kernels/shared/lanes.h"
#include "py_ort/kernel.h"

namespace py_ort {

inline bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// float32 outputs get the dtype of the first half-precision input; a kernel K with outputs that stay float32 says
// which do not: `static constexpr bool narrowed(size_t output)`.
template <class K>
class WithHalf {
 public:
  static Status make(const KernelInfo& info, WithHalf& out) {
    if constexpr (requires(K k) {
                    { K::make(info, k) } -> std::same_as<Status>;
                  }) {
      out.kernel_.emplace();
      return K::make(info, *out.kernel_);
    } else if constexpr (std::is_constructible_v<K, const KernelInfo&>) {
      out.kernel_.emplace(info);
      return {};
    } else {
      out.kernel_.emplace();
      return {};
    }
  }

  Status operator()(KernelContext& context) const {
    DType half = DType::undefined;
    for (size_t i = 0; i < context.input_count() && half == DType::undefined; ++i)
      if (const Tensor* input = context.input(i); input && is_half(input->dtype)) half = input->dtype;
    if (half == DType::undefined) return (*kernel_)(context);

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
    PY_ORT_TRY((*kernel_)(inner));
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

 private:
  static constexpr bool narrowed(size_t output) {
    if constexpr (requires { K::narrowed(output); }) return K::narrowed(output);
    else return true;
  }
  std::optional<K> kernel_;
  mutable std::vector<Derived<Tensor>> wide_;  // constants, by input
};

}  // namespace py_ort
