// Sixteen bytes to vectors of four floats, and back.
#pragma once

#include <wasm_simd128.h>

#include "kernels/shared/simd_math.h"

namespace py_ort {

// Widens; signed or unsigned.
template <bool kSigned>
inline void widen(v128_t bytes, v128_t (&to)[4]) {
  if (kSigned) simd::floats_of(wasm_v128_xor(bytes, wasm_i8x16_splat(-128)), to, 128);
  else simd::floats_of(bytes, to);
}

// Rounded, saturated.
template <bool kSigned>
inline v128_t narrow(const v128_t (&floats)[4]) {
  // Adding 1.5 * 2^23 rounds a number to the nearest even, and leaves the integer in its last bits.
  const auto integer = [&](int i) {
    const v128_t near = wasm_f32x4_pmin(wasm_f32x4_pmax(floats[i], wasm_f32x4_splat(-1024)), wasm_f32x4_splat(1024));
    return wasm_i32x4_sub(wasm_f32x4_add(near, wasm_f32x4_splat(12582912)), wasm_i32x4_splat(0x4b400000));
  };
  const v128_t low = wasm_i16x8_narrow_i32x4(integer(0), integer(1));
  const v128_t high = wasm_i16x8_narrow_i32x4(integer(2), integer(3));
  return kSigned ? wasm_i8x16_narrow_i16x8(low, high) : wasm_u8x16_narrow_i16x8(low, high);
}

}  // namespace py_ort
