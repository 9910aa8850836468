// Products of 8-bit integers, in the machine's form: the standard does not define how relaxed_dot_i8x16_i7x16_add reads
// a second operand of 128 and more.
#pragma once

#include "microkernels/target.h"

namespace py_ort::PY_ORT_TARGET {

enum class Dot {
  words,           // bytes of 128 and more are undefined: use 16-bit factors
  unsigned_pairs,  // the second operand is unsigned, and pairs of products saturate at 16 bits
  unsigned_bytes,  // the second operand is unsigned, sums are exact
  signed_bytes,    // the second operand is signed, sums are exact
};

#ifdef __wasm_relaxed_simd__
inline v128_t dot_bytes(v128_t a, v128_t b, v128_t sum) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, sum); }
inline v128_t dot_pairs(v128_t a, v128_t b) { return wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b); }

inline Dot dot() {
  const v128_t sums = dot_bytes(wasm_i8x16_splat(-128), wasm_u8x16_splat(255), wasm_i32x4_splat(0));
  switch (wasm_i32x4_extract_lane(sums, 0)) {
    case 4 * -128 * 255: return Dot::unsigned_bytes;
    case 4 * -128 * -1: return Dot::signed_bytes;
  }
  const v128_t pairs = dot_pairs(wasm_i8x16_splat(-64), wasm_u8x16_splat(255));
  return wasm_i16x8_extract_lane(pairs, 0) == 2 * -64 * 255 ? Dot::unsigned_pairs : Dot::words;
}
#else
inline v128_t dot_bytes(v128_t, v128_t, v128_t sum) { return sum; }  // never called
inline v128_t dot_pairs(v128_t a, v128_t) { return a; }              // never called
inline Dot dot() { return Dot::words; }
#endif

}  // namespace py_ort::PY_ORT_TARGET
