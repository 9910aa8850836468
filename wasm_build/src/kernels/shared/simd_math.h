// Elementary functions of four floats at once, within about 2 ulp of the exact value; NaN, infinities and denormals
// behave as in <cmath>. Coefficients: weighted minimax fits, rounded to float.
#pragma once

#include <wasm_simd128.h>

namespace py_ort::simd {

inline v128_t splat(float value) { return wasm_f32x4_splat(value); }
inline v128_t load(const float* from) { return wasm_v128_load(from); }
inline void store(float* to, v128_t value) { wasm_v128_store(to, value); }
inline v128_t add(v128_t a, v128_t b) { return wasm_f32x4_add(a, b); }
inline v128_t sub(v128_t a, v128_t b) { return wasm_f32x4_sub(a, b); }
inline v128_t mul(v128_t a, v128_t b) { return wasm_f32x4_mul(a, b); }
inline v128_t div(v128_t a, v128_t b) { return wasm_f32x4_div(a, b); }
// a*b + c: rounded twice, or once if relaxed SIMD fuses it.
inline v128_t mul_add(v128_t a, v128_t b, v128_t c) {
#ifdef __wasm_relaxed_simd__
  return wasm_f32x4_relaxed_madd(a, b, c);
#else
  return add(mul(a, b), c);
#endif
}
// One instruction each; a NaN in `a` stays a NaN.
inline v128_t at_most(v128_t a, v128_t limit) { return wasm_f32x4_pmin(a, limit); }
inline v128_t at_least(v128_t a, v128_t limit) { return wasm_f32x4_pmax(a, limit); }
// mask ? a : b, lane by lane (the lanes of the mask are all ones or all zeros)
inline v128_t select(v128_t mask, v128_t a, v128_t b) { return wasm_v128_bitselect(a, b, mask); }

// Converts four integers from 0 to 2^23 - 1: as the last bits of 2^23 they are added to it. For integers known to be
// positive a compiler uses the unsigned conversion, for which browsers need many instructions.
inline v128_t float_of(v128_t integers, float less = 0) {
  constexpr float kPower = 8388608;
  return sub(wasm_v128_or(integers, splat(kPower)), splat(kPower + less));
}
// The same for sixteen bytes.
inline void floats_of(v128_t bytes, v128_t (&floats)[4], float less = 0) {
  const v128_t low = wasm_u16x8_extend_low_u8x16(bytes), high = wasm_u16x8_extend_high_u8x16(bytes);
  floats[0] = float_of(wasm_u32x4_extend_low_u16x8(low), less),
  floats[1] = float_of(wasm_u32x4_extend_high_u16x8(low), less);
  floats[2] = float_of(wasm_u32x4_extend_low_u16x8(high), less),
  floats[3] = float_of(wasm_u32x4_extend_high_u16x8(high), less);
}

inline float sum_lanes(v128_t v) {
  const v128_t pairs = add(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
  return wasm_f32x4_extract_lane(pairs, 0) + wasm_f32x4_extract_lane(pairs, 1);
}
inline float max_lanes(v128_t v) {
  const v128_t pairs = wasm_f32x4_max(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
  const v128_t one = wasm_f32x4_max(pairs, wasm_i32x4_shuffle(pairs, pairs, 1, 0, 3, 2));
  return wasm_f32x4_extract_lane(one, 0);
}

// c0 + c1 x + c2 x^2 + ...
template <class... C>
inline v128_t polynomial(v128_t x, float c0, C... further) {
  if constexpr (sizeof...(further) == 0) return splat(c0);
  else return mul_add(polynomial(x, further...), x, splat(c0));
}

// x = n ln2 + r. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
struct Exponent {
  v128_t shifted, r;
  static v128_t shifter() { return splat(12582912.0f); }
  explicit Exponent(v128_t x) : shifted(mul_add(x, splat(1.44269504f), shifter())) {
    const v128_t n = sub(shifted, shifter());
    r = mul_add(n, splat(2.12194440e-4f), mul_add(n, splat(-0.693359375f), x));
  }
  v128_t whole() const { return wasm_i32x4_sub(shifted, shifter()); }  // n
  v128_t exp_of_rest() const {
    const v128_t p =
        polynomial(r, 4.999999404e-01f, 1.666651964e-01f, 4.166839644e-02f, 8.368796669e-03f, 1.381443348e-03f);
    return add(mul_add(mul(r, r), p, r), splat(1.0f));
  }
};

inline v128_t exp(v128_t x) {
  // inf and 0 beyond these bounds, without clamping too
  const Exponent parts(at_least(at_most(x, splat(89.0f)), splat(-104.0f)));
  // Times 2^n, in two steps: 2^n alone need not be a normal float.
  const v128_t whole = parts.whole(), half = wasm_i32x4_shr(whole, 1), bias = wasm_i32x4_splat(127);
  const v128_t first = wasm_i32x4_shl(wasm_i32x4_add(half, bias), 23);
  const v128_t second = wasm_i32x4_shl(wasm_i32x4_add(wasm_i32x4_sub(whole, half), bias), 23);
  return mul(mul(parts.exp_of_rest(), first), second);
}
// e^x for x <= 0, twice as fast: denormal results are 0.
inline v128_t exp_of_negative(v128_t x) {
  const v128_t least = splat(-87.3365f);  // of 2^-126
  const Exponent parts(at_least(x, least));
  const v128_t power = wasm_i32x4_add(wasm_i32x4_shl(parts.shifted, 23), splat(1.0f));  // 2^n
  return wasm_v128_andnot(mul(parts.exp_of_rest(), power), wasm_f32x4_lt(x, least));
}

inline v128_t log(v128_t x) {
  const v128_t denormal = wasm_f32x4_lt(x, splat(1.17549435e-38f));
  const v128_t normal = select(denormal, mul(x, splat(8388608.0f)), x);
  // x = 2^e m, m in [sqrt(1/2), sqrt(2)): the shift moves the exponent's step to sqrt(1/2).
  const v128_t offset = wasm_i32x4_splat(0x3f3504f3);
  const v128_t bits = wasm_i32x4_sub(normal, offset);
  const v128_t exponent = wasm_f32x4_convert_i32x4(wasm_i32x4_shr(bits, 23));
  const v128_t e = sub(exponent, wasm_v128_and(denormal, splat(23.0f)));
  const v128_t f = sub(wasm_i32x4_add(wasm_v128_and(bits, wasm_i32x4_splat(0x007fffff)), offset), splat(1.0f));
  const v128_t p = polynomial(f, 3.333333135e-01f, -2.500081956e-01f, 2.000122666e-01f, -1.662335694e-01f,
                              1.420175880e-01f, -1.316018254e-01f, 1.276157498e-01f, -7.634492964e-02f);
  const v128_t square = mul(f, f);
  v128_t tail = mul_add(mul(f, square), p, mul(e, splat(-2.12194440e-4f)));
  tail = mul_add(square, splat(-0.5f), tail);
  v128_t y = mul_add(e, splat(0.693359375f), add(f, tail));
  const v128_t infinity = splat(__builtin_inff());
  y = select(wasm_f32x4_eq(x, infinity), infinity, y);
  y = select(wasm_f32x4_eq(x, splat(0.0f)), splat(-__builtin_inff()), y);
  return select(wasm_f32x4_ge(x, splat(0.0f)), y, splat(__builtin_nanf("")));
}

inline v128_t sigmoid(v128_t x) { return div(splat(1.0f), add(splat(1.0f), exp(wasm_f32x4_neg(x)))); }

inline v128_t tanh(v128_t x) {
  const v128_t magnitude = wasm_f32x4_abs(x), square = mul(x, x);
  const v128_t p =
      polynomial(square, -3.333328068e-01f, 1.333144158e-01f, -5.373971537e-02f, 2.063908614e-02f, -5.704986397e-03f);
  const v128_t small = mul_add(mul(x, square), p, x);
  const v128_t e = exp(add(magnitude, magnitude));
  const v128_t large = sub(splat(1.0f), div(splat(2.0f), add(e, splat(1.0f))));
  const v128_t sign = wasm_v128_and(x, splat(-0.0f));
  return wasm_v128_or(select(wasm_f32x4_gt(magnitude, splat(0.625f)), large, small), sign);  // (that of -0, too)
}

// erf(x) for |x| up to 0.9
inline v128_t erf_series(v128_t x) {
  const v128_t p = polynomial(mul(x, x), 1.283791661e-01f, -3.761263490e-01f, 1.128371507e-01f, -2.686050907e-02f,
                              5.203858949e-03f, -8.175639668e-04f, 8.513104694e-05f);
  return mul_add(x, p, x);
}
// 1 - erf(x) for x >= 0
inline v128_t erf_rest(v128_t x) {
  const v128_t limit = splat(4.0f), a = at_most(x, limit);
  const v128_t p =
      polynomial(a, -1.128381149e+00f, -6.365871104e-01f, -1.029483745e-01f, 1.956730924e-02f, -3.694491846e-04f,
                 -1.293547871e-03f, 4.931559250e-04f, -9.585224833e-05f, 1.009814402e-05f, -4.558268037e-07f);
  return wasm_v128_andnot(exp_of_negative(mul(a, p)), wasm_f32x4_ge(x, limit));  // from `limit` on erf(x) rounds to 1
}
inline v128_t erf(v128_t x) {
  const v128_t magnitude = wasm_f32x4_abs(x), sign = wasm_v128_and(x, splat(-0.0f));
  const v128_t large = sub(splat(1.0f), erf_rest(magnitude));
  return select(wasm_f32x4_gt(magnitude, splat(0.9f)), wasm_v128_or(large, sign), erf_series(x));
}

}  // namespace py_ort::simd
