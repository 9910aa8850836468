// Kernels written for float32 that also accept float16 and bfloat16: inputs are widened, outputs narrowed.
#pragma once

#include <optional>
#include <vector>

#include "kernels/shared/derived.h"
#include "py_ort/kernel.h"

namespace py_ort {

inline bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The common code, out of line: there are many kernels, and pages download each.
class WideInputs {
 public:
  using Run = Status (*)(const void* kernel, KernelContext&);
  // Runs a kernel on inputs of float32. narrowed: the outputs that change from float32 to the inputs' dtype.
  Status run(KernelContext& context, const void* kernel, Run run, bool (*narrowed)(size_t)) const;

 private:
  mutable std::vector<Derived<Tensor>> wide_;  // constants, by input
};

// float32 outputs get the dtype of the first half-precision input. A kernel K with outputs that stay float32 declares
// which outputs are narrowed: `static constexpr bool narrowed(size_t output)`.
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
    const auto run = [](const void* kernel, KernelContext& context) {
      return (*static_cast<const K*>(kernel))(context);
    };
    return wide_inputs_.run(context, &*kernel_, run, narrowed);
  }

 private:
  static constexpr bool narrowed(size_t output) {
    if constexpr (requires { K::narrowed(output); }) return K::narrowed(output);
    else return true;
  }
  std::optional<K> kernel_;
  WideInputs wide_inputs_;
};

}  // namespace py_ort
