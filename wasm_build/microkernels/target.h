// The differences between instruction sets. Each micro-kernel's file is compiled once per target, with that target's
// flags.
#pragma once

#include <wasm_simd128.h>

#include <stddef.h>

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
// Begins the definition of a micro-kernel. A side module exports it by its plain name. The module has no data, table or
// library of its own: it only needs memory, and a stack from its user (__stack_pointer).
#define PY_ORT_MICROKERNEL(name) extern "C" __attribute__((visibility("default"))) void PY_ORT_FOR_TARGET(name)

namespace py_ort {
namespace PY_ORT_TARGET {

using simd::mul_add;

inline v128_t load_splat(const float* from) { return wasm_v128_load32_splat(from); }

// The first `count` (0 to 4) floats; the rest are zero. Reads nothing past them.
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

// Fetches a part of `bytes`, which will be read soon, into caches: a load every 64 bytes.
inline void fetch_lines(const void* from, size_t bytes, int32_t part, int32_t parts) {
  constexpr size_t kLine = 64;
  const char* line = static_cast<const char*>(from) + bytes * part / parts / kLine * kLine;
  for (const char* end = static_cast<const char*>(from) + bytes * (part + 1) / parts; line < end; line += kLine)
    static_cast<void>(*static_cast<const volatile char*>(line));
}

// x with zeros in the lanes after the first `count` (from 1 on).
inline v128_t keep_some(v128_t x, int32_t count) {
  return count >= 4 ? x : wasm_v128_and(x, wasm_i32x4_make(-1, count > 1 ? -1 : 0, count > 2 ? -1 : 0, 0));
}
// f(i, number of floats left, up to 4) for each vector of [begin, end). The compiler knows that full vectors have 4: a
// loop that also tests for the other case is twice as slow.
template <class F>
inline void for_vectors(int64_t begin, int64_t end, const F& f) {
  auto i = static_cast<int32_t>(begin);
  const auto last = static_cast<int32_t>(end);
  for (; i + 4 <= last; i += 4) f(i, 4);
  if (i < last) f(i, last - i);
}

}  // namespace PY_ORT_TARGET
}  // namespace py_ort
