// Abilities of kernels beyond their operators, for which passes ask: written to the manifest.
#pragma once
#include <vector>

#include "py_ort/kernel.h"

namespace py_ort {

struct KernelFeatures {
  const char* domain;
  const char* op_type;
  const char* names;  // separated by ','
};
std::vector<KernelFeatures>& kernel_features();

namespace detail {
struct FeatureRegistration {
  explicit FeatureRegistration(KernelFeatures features) { kernel_features().push_back(features); }
};
}  // namespace detail

// PY_ORT_FEATURES("", "MatMul", "bias,epilogue,residual"), beside its PY_ORT_KERNEL.
#define PY_ORT_FEATURES(domain, op_type, names)                     \
  static const ::py_ort::detail::FeatureRegistration PY_ORT_CONCAT( \
      features_, __COUNTER__)(::py_ort::KernelFeatures{domain, op_type, names})

}  // namespace py_ort
