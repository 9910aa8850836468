// What differs between instruction sets. Each micro-kernel's file is compiled once per target, with that target's
// flags.
#pragma once

#include <wasm_simd128.h>

#include "kernels/shared/simd_functions.h"

// PY_ORT_FOR_TARGET(f32_gemm_6x8) is f32_gemm_6x8__simd128, or f32_gemm_6x8__relaxed.
#define PY_ORT_JOIN_(name, target) name##__##target
#define PY_ORT_JOIN(name, target) PY_ORT_JOIN_(name, target)
#ifdef __wasm_relaxed_simd__
#define PY_ORT_TARGET relaxed
#else
#define PY_ORT_TARGET simd128
#endif
#define PY_ORT_FOR_TARGET(name) PY_ORT_JOIN(name, PY_ORT_TARGET)
// Begins the definition of a micro-kernel. A side module exports it by its plain name; it has no data, table or library
// of its own: it only needs memory, and a stack that its user gives it (__stack_pointer).
#define PY_ORT_MICROKERNEL(name) extern "C" __attribute__((visibility("default"))) void PY_ORT_FOR_TARGET(name)

namespace py_ort {
namespace PY_ORT_TARGET {

using simd::mul_add;

inline v128_t load_splat(const float* from) { return wasm_v128_load32_splat(from); }

// The first `count` (0 to 4) floats; the rest are zero. Nothing is read behind them.
inline v128_t load_some(const float* from, int32_t count) {
  if (count >= 4) return wasm_v128_load(from);
  alignas(16) float lanes[4] = {0, 0, 0, 0};
  for (int32_t i = 0; i < count; ++i) lanes[i] = from[i];
  return wasm_v128_load(lanes);
}
inline void store_some(float* to, v128_t value, int32_t count) {
  if (count >= 4) {
    wasm_v128_store(to, value);
    return;
  }
  alignas(16) float lanes[4];
  wasm_v128_store(lanes, value);
  for (int32_t i = 0; i < count; ++i) to[i] = lanes[i];
}

}  // namespace PY_ORT_TARGET
}  // namespace py_ort
