// Functions for the formulas of py_ort/schema/scalar_functions.py, on four floats at once. A small result of a
// subtraction is computed in another way, so that no digits are lost and fused multiplications change nothing.
#pragma once

#include "kernels/shared/simd_math.h"

namespace py_ort::simd {

inline v128_t abs(v128_t x) { return wasm_f32x4_abs(x); }
inline v128_t ceil(v128_t x) { return wasm_f32x4_ceil(x); }
inline v128_t floor(v128_t x) { return wasm_f32x4_floor(x); }
inline v128_t round(v128_t x) { return wasm_f32x4_nearest(x); }
inline v128_t sqrt(v128_t x) { return wasm_f32x4_sqrt(x); }
inline v128_t relu(v128_t x) { return at_least(x, splat(0.0f)); }
inline v128_t clamp(v128_t x, v128_t low, v128_t high) { return at_most(at_least(x, low), high); }
// 0 for -0
inline v128_t plain_zero(v128_t x) { return add(x, splat(0.0f)); }

// exp(x) - 1
inline v128_t expm1(v128_t x) {
  const v128_t series = mul(x, polynomial(x, 1.0f, 0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040));
  return select(wasm_f32x4_lt(wasm_f32x4_abs(x), splat(0.35f)), series, sub(exp(x), splat(1.0f)));
}
// log(1 + e) for e >= 0, with the part of e that 1 + e rounds away.
inline v128_t log1p(v128_t e) {
  const v128_t sum = add(splat(1.0f), e);
  return add(log(sum), div(sub(e, sub(sum, splat(1.0f))), sum));
}
// log(1 + e^x), without overflow
inline v128_t softplus(v128_t x) {
  return add(at_least(x, splat(0.0f)), log1p(exp(wasm_f32x4_neg(wasm_f32x4_abs(x)))));
}
// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2)
inline v128_t mish(v128_t x) {
  const v128_t e = exp(at_most(x, splat(20.0f))), n = mul(e, add(e, splat(2.0f)));
  return mul(x, div(n, add(n, splat(2.0f))));
}
// x/2 (1 + erf(y)) with y = x sqrt(1/2); where erf(y) is near -1, by its distance from -1.
inline v128_t gelu(v128_t x) {
  const v128_t rest = erf_rest(mul(wasm_f32x4_abs(x), splat(0.70710678118f)));
  return mul(mul(splat(0.5f), x), select(wasm_f32x4_lt(x, splat(0.0f)), rest, sub(splat(2.0f), rest)));
}

}  // namespace py_ort::simd
