// The activations that end a micro-kernel.
#pragma once

#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {

// The costly ones, out of line and many vectors at a time: they would only swell the loops of the cheap ones.
[[gnu::noinline]] inline void activate_slowly(const Activation& activation, v128_t* values, int count) {
  using namespace simd;
  const v128_t zero = splat(0.0f), one = splat(1.0f), a = splat(activation.a), b = splat(activation.b);
  const auto each = [&](const auto& f) {
    for (int i = 0; i < count; ++i) values[i] = f(values[i]);
  };
  const auto unit_clamp = [&](v128_t v) { return at_least(at_most(v, one), zero); };
  const auto softplus = [&](v128_t v) {  // log(1 + e^v), without overflow
    return add(at_least(v, zero), log(add(one, exp(wasm_f32x4_neg(wasm_f32x4_abs(v))))));
  };
  // Where b is not what the function's own text says, it is added to the result (see read_activation).
  switch (activation.kind) {
    case Activation::none: return;
    case Activation::clamp: return each([&](v128_t x) { return at_most(at_least(x, a), b); });
    case Activation::leaky_relu:
      return each([&](v128_t x) { return add(select(wasm_f32x4_lt(x, zero), mul(x, a), x), b); });
    case Activation::sigmoid: return each([&](v128_t x) { return add(sigmoid(x), b); });
    case Activation::tanh: return each([&](v128_t x) { return add(tanh(x), b); });
    case Activation::hard_sigmoid: return each([&](v128_t x) { return unit_clamp(mul_add(x, a, b)); });
    case Activation::hard_swish:
      return each([&](v128_t x) { return mul_add(x, unit_clamp(mul_add(x, splat(1.0f / 6), splat(0.5f))), b); });
    case Activation::elu:
      return each([&](v128_t x) { return select(wasm_f32x4_lt(x, zero), mul(a, sub(exp(x), one)), x); });
    case Activation::softplus: return each(softplus);
    case Activation::softsign: return each([&](v128_t x) { return div(x, add(one, wasm_f32x4_abs(x))); });
    case Activation::gelu:
      return each([&](v128_t x) { return mul_add(mul(x, splat(0.5f)), add(one, erf(mul(x, splat(0.70710678f)))), b); });
    case Activation::gelu_tanh:
      return each([&](v128_t x) {
        const v128_t inner = mul(mul(x, splat(0.79788456f)), mul_add(mul(x, x), splat(0.044715f), one));
        return mul(mul(x, splat(0.5f)), add(one, tanh(inner)));
      });
    case Activation::swish: return each([&](v128_t x) { return mul_add(x, sigmoid(mul(x, a)), b); });
    case Activation::mish: return each([&](v128_t x) { return mul(x, tanh(softplus(x))); });
    case Activation::exp: return each([&](v128_t x) { return exp(x); });
    case Activation::abs: return each([&](v128_t x) { return wasm_f32x4_abs(x); });
    case Activation::affine: return each([&](v128_t x) { return mul_add(x, a, b); });
    case Activation::scaled_tanh: return each([&](v128_t x) { return mul(a, tanh(mul(b, x))); });
    case Activation::thresholded_relu: return each([&](v128_t x) { return wasm_v128_and(x, wasm_f32x4_gt(x, a)); });
    case Activation::selu:
      return each([&](v128_t x) { return mul(b, select(wasm_f32x4_lt(x, zero), mul(a, sub(exp(x), one)), x)); });
    case Activation::celu:
      return each([&](v128_t x) { return select(wasm_f32x4_lt(x, zero), mul(a, sub(exp(div(x, a)), one)), x); });
    case Activation::shrink:
      return each([&](v128_t x) {
        return select(wasm_f32x4_lt(x, wasm_f32x4_neg(b)), add(x, a), wasm_v128_and(wasm_f32x4_gt(x, b), sub(x, a)));
      });
  }
}

// N vectors that the compiler keeps in registers.
template <int N>
inline void activate(const Activation& activation, v128_t (&values)[N]) {
  if (activation.kind == Activation::none) return;
  if (activation.kind == Activation::clamp) {
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
