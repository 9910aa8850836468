#include <cmath>

#include "kernels/shared/simd_functions.h"
#include "kernels/elementwise/unary.h"

namespace py_ort {
namespace simd {
namespace {

// sin(x + quarter * pi/2). x is reduced to [-pi/4, pi/4] by quarter turns; pi/2 is subtracted in parts of 10 bits,
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
v128_t sin(v128_t x) { return sine(x, 0); }
v128_t cos(v128_t x) { return sine(x, 1); }

}  // namespace
}  // namespace simd

namespace f64 {
namespace {

using std::abs, std::asin, std::acos, std::asinh, std::atan, std::atanh, std::ceil, std::cos, std::cosh, std::erf,
    std::exp, std::expm1, std::floor, std::log, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
double acosh(double x) { return x < 1 ? NAN : std::acosh(x); }
double round(double x) { return std::nearbyint(x); }
double sign(double x) { return x != x ? x : (x > 0) - (x < 0); }
double relu(double x) { return x < 0 ? 0 : x; }
double clamp(double x, double low, double high) {
  const double raised = x < low ? low : x;
  return raised > high ? high : raised;
}
double plain_zero(double x) { return x + 0.0; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace
}  // namespace f64
}  // namespace py_ort

#include "py_ort/gen/unary_functions_generated.h"

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

constexpr UnaryFunction kFunctions[] = {
#define PY_ORT_FUNCTION(name, a_name, a, b_name, b, vector, four, kind) \
  {name, a_name, a, b_name, b, Activation::vector, four, &f64::functions::kind},
    PY_ORT_UNARY_FUNCTIONS(PY_ORT_FUNCTION)
#undef PY_ORT_FUNCTION
};

}  // namespace

const UnaryFunction* find_unary(std::string_view name) {
  for (const UnaryFunction& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

}  // namespace py_ort
