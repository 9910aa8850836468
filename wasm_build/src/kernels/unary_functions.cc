#include <cmath>

#include "simd_math.h"
#include "unary.h"

namespace py_ort {
namespace {

using namespace simd;

template <v128_t (*F)(v128_t x, v128_t a, v128_t b)>
void map4(const float* x, float* y, size_t count, UnaryParams params) {
  const v128_t a = splat(params.a), b = splat(params.b);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) store(y + i, F(load(x + i), a, b));
  if (i == count) return;
  float rest[4] = {};
  for (size_t k = i; k < count; ++k) rest[k - i] = x[k];
  store(rest, F(load(rest), a, b));
  for (size_t k = i; k < count; ++k) y[k] = rest[k - i];
}

// sin(x + quarter * pi/2). x is brought to [-pi/4, pi/4] by quarter turns; pi/2 is subtracted in parts of 10 bits,
// exact up to 8192 radians.
v128_t sine(v128_t x, int quarter) {
  if (wasm_v128_any_true(wasm_f32x4_gt(wasm_f32x4_abs(x), splat(8192.0f)))) {  // (also infinities; a NaN stays one)
    float one[4];
    store(one, x);
    for (float& v : one)
      v = static_cast<float>(quarter ? std::cos(static_cast<double>(v)) : std::sin(static_cast<double>(v)));
    return load(one);
  }
  const v128_t turns = wasm_f32x4_nearest(mul(x, splat(0.636619772f)));
  v128_t r = mul_add(turns, splat(-1.5703125f), x);
  r = mul_add(turns, splat(-4.835128784e-4f), r);
  r = mul_add(turns, splat(-3.138557076e-7f), r);
  r = mul_add(turns, splat(-6.077094383e-11f), r);
  const v128_t square = mul(r, r);
  const v128_t sin =
      mul_add(mul(r, square), polynomial(square, -1.666665524e-01f, 8.332172409e-03f, -1.951647864e-04f), r);
  const v128_t cos =
      mul_add(mul(square, square), polynomial(square, 4.166664556e-02f, -1.388735953e-03f, 2.443753147e-05f),
              mul_add(square, splat(-0.5f), splat(1.0f)));
  const v128_t which = wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(turns), wasm_i32x4_splat(quarter));
  const v128_t odd = wasm_i32x4_eq(wasm_v128_and(which, wasm_i32x4_splat(1)), wasm_i32x4_splat(1));
  const v128_t y = wasm_v128_xor(select(odd, cos, sin), wasm_i32x4_shl(wasm_v128_and(which, wasm_i32x4_splat(2)), 30));
  return quarter ? y : select(wasm_f32x4_eq(x, splat(0.0f)), x, y);  // the sine of -0 is -0
}

#define PY_ORT_SIMD(name, ...) \
  inline v128_t name(v128_t x, [[maybe_unused]] v128_t a, [[maybe_unused]] v128_t b) { return __VA_ARGS__; }

inline v128_t zero() { return splat(0.0f); }
inline v128_t one() { return splat(1.0f); }
inline v128_t clamp01(v128_t x) { return at_most(at_least(x, zero()), one()); }
// log(1 + e) for e in [0, 1]: 1 + e loses what is small of e.
inline v128_t log1p(v128_t e) {
  const v128_t series = mul(e, polynomial(e, 1.0f, -0.5f, 1.0f / 3, -0.25f));
  return select(wasm_f32x4_lt(e, splat(0.02f)), series, log(add(one(), e)));
}
// exp(x) - 1
inline v128_t expm1(v128_t x) {
  const v128_t series = mul(x, polynomial(x, 1.0f, 0.5f, 1.0f / 6, 1.0f / 24));
  return select(wasm_f32x4_lt(wasm_f32x4_abs(x), splat(0.03f)), series, sub(exp(x), one()));
}
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2).
inline v128_t mish(v128_t x) {
  const v128_t e = exp(at_most(x, splat(20.0f))), n = mul(e, add(e, splat(2.0f)));
  return mul(x, div(n, add(n, splat(2.0f))));
}
inline v128_t half_times(v128_t x, v128_t y) { return mul(mul(splat(0.5f), x), add(one(), y)); }
constexpr float kTanhGelu = 0.7978845608f, kTanhGeluCube = 0.044715f;  // sqrt(2 / pi)
constexpr float kSqrtHalf = 0.70710678118f;

PY_ORT_SIMD(abs4, wasm_f32x4_abs(x))
PY_ORT_SIMD(neg4, wasm_f32x4_neg(x))
PY_ORT_SIMD(ceil4, wasm_f32x4_ceil(x))
PY_ORT_SIMD(floor4, wasm_f32x4_floor(x))
PY_ORT_SIMD(round4, wasm_f32x4_nearest(x))
PY_ORT_SIMD(sqrt4, wasm_f32x4_sqrt(x))
PY_ORT_SIMD(reciprocal4, div(one(), x))
PY_ORT_SIMD(exp4, exp(x))
PY_ORT_SIMD(log4, log(x))
PY_ORT_SIMD(sin4, sine(x, 0))
PY_ORT_SIMD(cos4, sine(x, 1))
PY_ORT_SIMD(tanh4, tanh(x))
PY_ORT_SIMD(erf4, erf(x))
PY_ORT_SIMD(sigmoid4, sigmoid(x))
PY_ORT_SIMD(relu4, at_least(x, zero()))
PY_ORT_SIMD(leaky_relu4, select(wasm_f32x4_lt(x, zero()), mul(x, a), x))
PY_ORT_SIMD(hard_sigmoid4, clamp01(mul_add(x, a, b)))
PY_ORT_SIMD(hard_swish4, mul(x, clamp01(mul_add(x, splat(1.0f / 6), splat(0.5f)))))
PY_ORT_SIMD(elu4, select(wasm_f32x4_lt(x, zero()), mul(a, expm1(x)), x))
// Selu and Celu are defined by a difference and a sum, which are 0 for -0.
PY_ORT_SIMD(selu4, add(mul(b, select(wasm_f32x4_lt(x, zero()), mul(a, expm1(x)), x)), zero()))
PY_ORT_SIMD(celu4, add(select(wasm_f32x4_lt(x, zero()), mul(a, expm1(div(x, a))), x), zero()))
PY_ORT_SIMD(thresholded_relu4, wasm_v128_and(x, wasm_f32x4_gt(x, a)))
PY_ORT_SIMD(softplus4, add(at_least(x, zero()), log1p(exp(wasm_f32x4_neg(wasm_f32x4_abs(x))))))
PY_ORT_SIMD(softsign4, div(x, add(one(), wasm_f32x4_abs(x))))
PY_ORT_SIMD(mish4, mish(x))
PY_ORT_SIMD(swish4, mul(x, sigmoid(mul(a, x))))
PY_ORT_SIMD(gelu4, half_times(x, erf(mul(x, splat(kSqrtHalf)))))
PY_ORT_SIMD(tanh_gelu4, half_times(x, tanh(mul(splat(kTanhGelu), mul_add(mul(mul(x, x), x), splat(kTanhGeluCube), x)))))
PY_ORT_SIMD(shrink4,
            select(wasm_f32x4_lt(x, wasm_f32x4_neg(b)), add(x, a), wasm_v128_and(wasm_f32x4_gt(x, b), sub(x, a))))
#undef PY_ORT_SIMD

#define PY_ORT_F64(...) \
  [](double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return __VA_ARGS__; }
double hard_sigmoid(double x, double a, double b) { return std::fmin(1, std::fmax(0, a * x + b)); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
double elu(double x, double a) { return x < 0 ? a * std::expm1(x) : x; }

// op_type, attribute a, attribute b, four floats at once, one double
constexpr UnaryFunction kFunctions[] = {
    {"Abs", nullptr, 0, nullptr, 0, &map4<abs4>, PY_ORT_F64(std::fabs(x))},
    {"Acos", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::acos(x))},
    {"Acosh", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(x < 1 ? NAN : std::acosh(x))},
    {"Asin", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::asin(x))},
    {"Asinh", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::asinh(x))},
    {"Atan", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::atan(x))},
    {"Atanh", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::atanh(x))},
    {"Ceil", nullptr, 0, nullptr, 0, &map4<ceil4>, PY_ORT_F64(std::ceil(x))},
    {"Celu", "alpha", 1, nullptr, 0, &map4<celu4>, PY_ORT_F64((x < 0 ? a * std::expm1(x / a) : x) + 0.0)},
    {"Cos", nullptr, 0, nullptr, 0, &map4<cos4>, PY_ORT_F64(std::cos(x))},
    {"Cosh", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::cosh(x))},
    {"Elu", "alpha", 1, nullptr, 0, &map4<elu4>, PY_ORT_F64(elu(x, a))},
    {"Erf", nullptr, 0, nullptr, 0, &map4<erf4>, PY_ORT_F64(std::erf(x))},
    {"Exp", nullptr, 0, nullptr, 0, &map4<exp4>, PY_ORT_F64(std::exp(x))},
    {"FastGelu", nullptr, 0, nullptr, 0, &map4<tanh_gelu4>,
     PY_ORT_F64(0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))},
    {"Floor", nullptr, 0, nullptr, 0, &map4<floor4>, PY_ORT_F64(std::floor(x))},
    {"Gelu", nullptr, 0, nullptr, 0, &map4<gelu4>, PY_ORT_F64(0.5 * x * (1 + std::erf(x * 0.7071067811865476)))},
    {"HardSigmoid", "alpha", 0.2f, "beta", 0.5f, &map4<hard_sigmoid4>, &hard_sigmoid},
    {"HardSwish", nullptr, 0, nullptr, 0, &map4<hard_swish4>, PY_ORT_F64(x * hard_sigmoid(x, 1.0 / 6, 0.5))},
    {"LeakyRelu", "alpha", 0.01f, nullptr, 0, &map4<leaky_relu4>, PY_ORT_F64(x < 0 ? a * x : x)},
    {"Log", nullptr, 0, nullptr, 0, &map4<log4>, PY_ORT_F64(std::log(x))},
    {"Mish", nullptr, 0, nullptr, 0, &map4<mish4>, PY_ORT_F64(x * std::tanh(softplus(x)))},
    {"Neg", nullptr, 0, nullptr, 0, &map4<neg4>, PY_ORT_F64(-x)},
    {"QuickGelu", "alpha", 1.702f, nullptr, 0, &map4<swish4>, PY_ORT_F64(x * logistic(a * x))},
    {"Reciprocal", nullptr, 0, nullptr, 0, &map4<reciprocal4>, PY_ORT_F64(1 / x)},
    {"Relu", nullptr, 0, nullptr, 0, &map4<relu4>, PY_ORT_F64(x < 0 ? 0 : x)},
    {"Round", nullptr, 0, nullptr, 0, &map4<round4>, PY_ORT_F64(std::nearbyint(x))},
    {"Selu", "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f, &map4<selu4>,
     PY_ORT_F64(b * elu(x, a) + 0.0)},
    {"Shrink", "bias", 0, "lambd", 0.5f, &map4<shrink4>,
     PY_ORT_F64(x < -b  ? x + a
                : x > b ? x - a
                        : 0)},
    {"Sigmoid", nullptr, 0, nullptr, 0, &map4<sigmoid4>, PY_ORT_F64(logistic(x))},
    {"Sign", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(x != x ? x : (x > 0) - (x < 0))},
    {"Sin", nullptr, 0, nullptr, 0, &map4<sin4>, PY_ORT_F64(std::sin(x))},
    {"Sinh", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::sinh(x))},
    {"Softplus", nullptr, 0, nullptr, 0, &map4<softplus4>, PY_ORT_F64(softplus(x))},
    {"Softsign", nullptr, 0, nullptr, 0, &map4<softsign4>, PY_ORT_F64(x / (1 + std::fabs(x)))},
    {"Sqrt", nullptr, 0, nullptr, 0, &map4<sqrt4>, PY_ORT_F64(std::sqrt(x))},
    {"Swish", "alpha", 1, nullptr, 0, &map4<swish4>, PY_ORT_F64(x * logistic(a * x))},
    {"Tan", nullptr, 0, nullptr, 0, nullptr, PY_ORT_F64(std::tan(x))},
    {"Tanh", nullptr, 0, nullptr, 0, &map4<tanh4>, PY_ORT_F64(std::tanh(x))},
    {"ThresholdedRelu", "alpha", 1, nullptr, 0, &map4<thresholded_relu4>, PY_ORT_F64(x > a ? x : 0)},
};
#undef PY_ORT_F64

}  // namespace

const UnaryFunction* find_unary(std::string_view op_type) {
  for (const UnaryFunction& function : kFunctions)
    if (function.op_type == op_type) return &function;
  return nullptr;
}

}  // namespace py_ort
