// The activations that end a micro-kernel.
#pragma once

#include "microkernels/target.h"
#include "py_ort/gen/activation_functions_generated.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {

// The costly ones, out of line and many vectors at a time: they would only swell the loops of the cheap ones.
[[gnu::noinline]] inline void activate_slowly(const Activation& activation, v128_t* values, int count) {
  const v128_t a = simd::splat(activation.a), b = simd::splat(activation.b), offset = simd::splat(activation.offset);
  switch (activation.kind) {
    case Activation::none: return;
#define PY_ORT_CASE(kind, ...)                                                                             \
  case Activation::kind:                                                                                   \
    for (int i = 0; i < count; ++i) values[i] = simd::add(simd::functions::kind(values[i], a, b), offset); \
    return;
      PY_ORT_ACTIVATIONS(PY_ORT_CASE)
#undef PY_ORT_CASE
  }
}

// N vectors that the compiler keeps in registers.
template <int N>
inline void activate(const Activation& activation, v128_t (&values)[N]) {
  if (activation.kind == Activation::none) return;
  if (activation.kind == Activation::clip) {
    const v128_t low = simd::splat(activation.a), high = simd::splat(activation.b);
#pragma clang loop unroll(full)
    for (int i = 0; i < N; ++i) values[i] = simd::at_most(simd::at_least(values[i], low), high);
    return;
  }
  v128_t copies[N];  // only these have an address
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) copies[i] = values[i];
  activate_slowly(activation, copies, N);
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) values[i] = copies[i];
}

inline v128_t activate(const Activation& activation, v128_t x) {
  v128_t values[1] = {x};
  activate(activation, values);
  return values[0];
}

}  // namespace py_ort::PY_ORT_TARGET
