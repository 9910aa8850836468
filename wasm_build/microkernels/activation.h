// The functions and further steps of an epilogue, at the end of a micro-kernel.
#pragma once

#include "microkernels/target.h"
#include "py_ort/gen/activation_functions_generated.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {

// Vectors in one turn of the loop: browsers make the constants again in each. The core uses little of this, and must
// stay small.
#ifdef __EMSCRIPTEN__
#define PY_ORT_TURN _Pragma("clang loop unroll_count(1)")
#else
#define PY_ORT_TURN _Pragma("clang loop unroll_count(2)")
#endif

// The costly functions, out of line and many vectors at a time: they would only swell the loops of the cheap ones. Each
// is a C++ function of its own: browsers optimize whole functions, and should optimize only those in use. (f32_map.cc
// makes more of them.)
#define PY_ORT_EACH(kind, ...)                                                                                  \
  [[gnu::noinline]] inline void kind##_each(const Activation& activation, float more, const float* x, float* y, \
                                            int32_t count) {                                                    \
    const v128_t a = simd::splat(activation.a), b = simd::splat(activation.b), offset = simd::splat(more);      \
    PY_ORT_TURN for (int32_t i = 0; i < count; i += 4)                                                          \
        simd::store(y + i, simd::add(simd::functions::kind(simd::load(x + i), a, b), offset));                  \
  }
PY_ORT_ACTIVATIONS(PY_ORT_EACH)
// y = function(x) + more, of `count` floats, a multiple of 4; y may be x.
[[gnu::noinline]] inline void activate_slowly(const Activation& activation, float more, const float* x, float* y,
                                              int32_t count) {
  switch (activation.kind) {
    case Activation::none:
      for (int32_t i = 0; i < count; i += 4) simd::store(y + i, simd::add(simd::load(x + i), simd::splat(more)));
      return;
#define PY_ORT_CASE(kind, ...) \
  case Activation::kind: return kind##_each(activation, more, x, y, count);
      PY_ORT_ACTIVATIONS(PY_ORT_CASE)
#undef PY_ORT_CASE
    default: __builtin_trap();  // no activation ends here
  }
}
inline void activate_slowly(const Activation& activation, float more, v128_t* values, int count) {
  auto* floats = reinterpret_cast<float*>(values);
  activate_slowly(activation, more, floats, floats, count * 4);
}

// Applies function and offset to vectors in memory. The residual is added in place.
inline void apply(const Epilogue& epilogue, v128_t* values, int count) {
  if (epilogue.form == Epilogue::identity) return;
  if (epilogue.form == Epilogue::function) return activate_slowly(epilogue.activation, epilogue.offset, values, count);
  const v128_t low = simd::splat(epilogue.activation.a), high = simd::splat(epilogue.activation.b);
  for (int i = 0; i < count; ++i) values[i] = simd::at_most(simd::at_least(values[i], low), high);
}

// For N vectors that the compiler keeps in registers.
template <int N>
inline void apply(const Epilogue& epilogue, v128_t (&values)[N]) {
  if (epilogue.form == Epilogue::identity) return;
  if (epilogue.form == Epilogue::clamp) {
    const v128_t low = simd::splat(epilogue.activation.a), high = simd::splat(epilogue.activation.b);
#pragma clang loop unroll(full)
    for (int i = 0; i < N; ++i) values[i] = simd::at_most(simd::at_least(values[i], low), high);
    return;
  }
  v128_t copies[N];  // only these have an address
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) copies[i] = values[i];
  activate_slowly(epilogue.activation, epilogue.offset, copies, N);
#pragma clang loop unroll(full)
  for (int i = 0; i < N; ++i) values[i] = copies[i];
}

// Adds the residual as the last step: it is rare, and out of line it takes no registers of the loops. values:
// [rows][vectors] copies, which alone have an address. The residual is read before anything is stored, since the result
// may be in its place.
[[gnu::noinline]] inline void add_rows(v128_t* values, const float* z, size_t stride, int32_t rows, int32_t vectors,
                                       int32_t columns) {
  for (int32_t row = 0; row < rows; ++row, z += stride)
    for (int32_t v = 0; v < vectors; ++v, ++values)
      if (v * 4 < columns) *values = simd::add(*values, load_some(z + v * 4, columns - v * 4));
}

// One vector; the residual is `z`, if any.
inline v128_t apply(const Epilogue& epilogue, v128_t x, const v128_t* z) {
  v128_t values[1] = {z && !epilogue.residual_last ? simd::add(x, *z) : x};
  apply(epilogue, values);
  return z && epilogue.residual_last ? simd::add(values[0], *z) : values[0];
}

inline v128_t activate(const Activation& activation, v128_t x) {
  if (activation.kind == Activation::none) return x;
  activate_slowly(activation, -0.0f, &x, 1);
  return x;
}

}  // namespace py_ort::PY_ORT_TARGET
