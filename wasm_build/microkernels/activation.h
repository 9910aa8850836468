// The activations that end a micro-kernel.
#pragma once

#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {

// The costly ones, out of line: they would only swell the loops of the cheap ones.
[[gnu::noinline]] inline v128_t activate_slowly(const Activation& activation, v128_t x) {
  using namespace simd;
  const v128_t zero = splat(0.0f), one = splat(1.0f), a = splat(activation.a), b = splat(activation.b);
  const auto unit_clamp = [&](v128_t v) { return at_least(at_most(v, one), zero); };
  const auto softplus = [&](v128_t v) {  // log(1 + e^v), without overflow
    return add(at_least(v, zero), log(add(one, exp(wasm_f32x4_neg(wasm_f32x4_abs(v))))));
  };
  switch (activation.kind) {
    case Activation::none: return x;
    case Activation::clamp: return at_most(at_least(x, a), b);
    case Activation::leaky_relu: return select(wasm_f32x4_lt(x, zero), mul(x, a), x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::tanh: return tanh(x);
    case Activation::hard_sigmoid: return unit_clamp(mul_add(x, a, b));
    case Activation::hard_swish: return mul(x, unit_clamp(mul_add(x, splat(1.0f / 6), splat(0.5f))));
    case Activation::elu: return select(wasm_f32x4_lt(x, zero), mul(a, sub(exp(x), one)), x);
    case Activation::softplus: return softplus(x);
    case Activation::softsign: return div(x, add(one, wasm_f32x4_abs(x)));
    case Activation::gelu: return mul(mul(x, splat(0.5f)), add(one, erf(mul(x, splat(0.70710678f)))));
    case Activation::gelu_tanh: {
      const v128_t inner = mul(mul(x, splat(0.79788456f)), mul_add(mul(x, x), splat(0.044715f), one));
      return mul(mul(x, splat(0.5f)), add(one, tanh(inner)));
    }
    case Activation::swish: return mul(x, sigmoid(mul(x, a)));
    case Activation::mish: return mul(x, tanh(softplus(x)));
    case Activation::exp: return exp(x);
    case Activation::abs: return wasm_f32x4_abs(x);
    case Activation::affine: return mul_add(x, a, b);
    case Activation::scaled_tanh: return mul(a, tanh(mul(b, x)));
    case Activation::thresholded_relu: return wasm_v128_and(x, wasm_f32x4_gt(x, a));
  }
  return x;
}

inline v128_t activate(const Activation& activation, v128_t x) {
  switch (activation.kind) {
    case Activation::none: return x;
    case Activation::clamp: return simd::at_most(simd::at_least(x, simd::splat(activation.a)), simd::splat(activation.b));
    default: return activate_slowly(activation, x);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
