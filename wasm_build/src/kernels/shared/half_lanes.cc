#include "kernels/shared/half_lanes.h"

#include <wasm_simd128.h>

#include "kernels/shared/float_bits.h"

namespace py_ort {
namespace {

v128_t all(uint32_t bits) { return wasm_i32x4_splat(static_cast<int32_t>(bits)); }
v128_t pick(v128_t mask, v128_t a, v128_t b) { return wasm_v128_bitselect(a, b, mask); }

v128_t widen4(v128_t x) {  // float16s in the low halves of the lanes
  const v128_t magnitude = wasm_i32x4_shl(wasm_v128_and(x, all(0x7fff)), 13),
               sign = wasm_i32x4_shl(wasm_v128_and(x, all(0x8000)), 16);
  const v128_t scaled = wasm_f32x4_mul(magnitude, wasm_f32x4_splat(0x1p112f));
  const v128_t infinite = wasm_v128_and(wasm_i32x4_ge(magnitude, all(0x0f800000)), all(0x7f800000));
  return wasm_v128_or(scaled, wasm_v128_or(infinite, sign));
}

v128_t to_float16_4(v128_t x) {
  const v128_t magnitude = wasm_v128_and(x, all(0x7fffffff)), sign = wasm_v128_and(wasm_u32x4_shr(x, 16), all(0x8000));
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(magnitude, 13), all(1));
  const v128_t normal = wasm_u32x4_shr(wasm_i32x4_add(wasm_i32x4_sub(magnitude, all(0x38000000 - 0xfff)), odd), 13);
  const v128_t subnormal = wasm_i32x4_sub(wasm_f32x4_add(magnitude, wasm_f32x4_splat(0.5f)), all(0x3f000000));
  v128_t bits = pick(wasm_i32x4_lt(magnitude, all(0x38800000)), subnormal, normal);
  bits = pick(wasm_i32x4_ge(magnitude, all(0x477ff000)), all(0x7c00), bits);
  bits = pick(wasm_i32x4_gt(magnitude, all(0x7f800000)), all(0x7e00), bits);
  return wasm_v128_or(bits, sign);
}

v128_t to_bfloat16_4(v128_t x) {
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(x, 16), all(1));
  const v128_t rounded = wasm_u32x4_shr(wasm_i32x4_add(wasm_i32x4_add(x, all(0x7fff)), odd), 16);
  return pick(wasm_f32x4_ne(x, x), wasm_v128_or(wasm_u32x4_shr(x, 16), all(0x40)), rounded);
}

template <v128_t (*To)(v128_t), class Half, Half (*One)(float)>
void narrow_halves(const float* from, uint16_t* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    wasm_v128_store(to + i, wasm_u16x8_narrow_i32x4(To(wasm_v128_load(from + i)), To(wasm_v128_load(from + i + 4))));
  for (; i < count; ++i) to[i] = One(from[i]).bits;
}

}  // namespace

void widen_float16(const uint16_t* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const v128_t halves = wasm_v128_load(from + i);
    wasm_v128_store(to + i, widen4(wasm_u32x4_extend_low_u16x8(halves)));
    wasm_v128_store(to + i + 4, widen4(wasm_u32x4_extend_high_u16x8(halves)));
  }
  for (; i < count; ++i) to[i] = to_float(Float16{from[i]});
}

void narrow_float16(const float* from, uint16_t* to, size_t count) {
  narrow_halves<to_float16_4, Float16, to_float16>(from, to, count);
}
void narrow_bfloat16(const float* from, uint16_t* to, size_t count) {
  narrow_halves<to_bfloat16_4, BFloat16, to_bfloat16>(from, to, count);
}

}  // namespace py_ort
