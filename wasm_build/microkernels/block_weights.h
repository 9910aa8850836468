// Weights of few bits, unpacked, and their multiplication.
#pragma once

#include "microkernels/i8_dot.h"
#include "microkernels/target.h"

namespace py_ort::PY_ORT_TARGET {

// Bytes minus `Offset`, which is 0 or 128.
template <int32_t Offset>
inline v128_t moved(v128_t bytes) {
  return Offset == 0 ? bytes : wasm_v128_xor(bytes, wasm_u8x16_splat(Offset));
}

// Interleaves the low and the high 4 bits of bytes, the low ones first.
inline void interleave(v128_t low, v128_t high, v128_t& first, v128_t& second) {
  first = wasm_i8x16_shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  second = wasm_i8x16_shuffle(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// 32 weights as bytes, in order. For 16 weights at the end of a column, 16 bytes past them are read.
template <int Bits>
inline void unpack(const uint8_t* from, v128_t& first, v128_t& second) {
  if constexpr (Bits == 8) {
    first = wasm_v128_load(from), second = wasm_v128_load(from + 16);
    return;
  }
  const v128_t nibble = wasm_i8x16_splat(15);
  const v128_t bytes = Bits == 4 ? wasm_v128_load(from) : wasm_v128_load64_zero(from);
  interleave(wasm_v128_and(bytes, nibble), wasm_v128_and(wasm_u16x8_shr(bytes, 4), nibble), first, second);
  if constexpr (Bits == 2) {
    const v128_t pair = wasm_i8x16_splat(3), both = first;
    interleave(wasm_v128_and(both, pair), wasm_v128_and(wasm_u16x8_shr(both, 2), pair), first, second);
  }
}

// The zero points of a column as floats, padded_blocks() of them.
template <int Bits>
inline const float* zero_points(const BlockProduct& p, int32_t column, float* scratch) {
  const int32_t blocks = p.blocks();
  if (p.float_zeros) return p.float_zeros + static_cast<size_t>(column) * blocks;
  if (!p.zeros) return scratch;  // filled once
  const uint8_t* from = p.zeros + static_cast<size_t>(column) * ((blocks * Bits + 7) / 8);
  for (int32_t i = 0; i < blocks; i += 32, from += 4 * Bits) {
    v128_t bytes[2], floats[4];
    // Not past the 16 bytes that are readable after the last column.
    if (Bits == 8 && blocks - i <= 16) bytes[0] = bytes[1] = wasm_v128_load(from);
    else unpack<Bits>(from, bytes[0], bytes[1]);
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half) {
      simd::floats_of(bytes[half], floats);
#pragma clang loop unroll(full)
      for (int j = 0; j < 4; ++j) simd::store(scratch + i + half * 16 + j * 4, floats[j]);
    }
  }
  return scratch;
}
inline void fill_zero_points(const BlockProduct& p, float* scratch) {
  const v128_t middle = simd::splat(static_cast<float>(1 << (p.bits - 1)));
  for (int32_t i = 0; i < p.padded_blocks(); i += 4) simd::store(scratch + i, middle);
}

// Multiplies prepared rows by 32 weights. Sums have four lanes, which are added up at the end of a row.
struct FloatRows {
  using Element = float;
  static constexpr int32_t kOffset = 0;  // subtracted from weights before the product
  static v128_t add(const float* a, v128_t first, v128_t second, v128_t sum) {
    v128_t weights[4];
    simd::floats_of(first, weights);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) sum = mul_add(weights[i], simd::load(a + 4 * i), sum);
    simd::floats_of(second, weights);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) sum = mul_add(weights[i], simd::load(a + 16 + 4 * i), sum);
    return sum;
  }
  static v128_t total(v128_t sum) { return sum; }
};

// Rounded to 8 bits, in words: exact for all weights.
struct WordRows {
  using Element = int16_t;
  static constexpr int32_t kOffset = 0;
  static v128_t add(const int16_t* a, v128_t first, v128_t second, v128_t sum) {
    const v128_t weights[] = {wasm_u16x8_extend_low_u8x16(first), wasm_u16x8_extend_high_u8x16(first),
                              wasm_u16x8_extend_low_u8x16(second), wasm_u16x8_extend_high_u8x16(second)};
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(weights[i], wasm_v128_load(a + 8 * i)));
    return sum;
  }
  static v128_t total(v128_t sum) { return wasm_f32x4_convert_i32x4(sum); }
};

#ifdef __wasm_relaxed_simd__
// Rounded to 8 bits, in bytes, for weights of up to 4 bits. To the instruction these have seven bits, for which the
// standard defines the result, and sixteen products of 127 * 15 fit in 16 bits.
struct PairRows {
  using Element = int8_t;
  static constexpr int32_t kOffset = 0;
  static v128_t add(const int8_t* a, v128_t first, v128_t second, v128_t sum) {
    const v128_t both = wasm_i16x8_add(dot_pairs(wasm_v128_load(a), first), dot_pairs(wasm_v128_load(a + 16), second));
    return wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(both));
  }
  static v128_t total(v128_t sum) { return wasm_f32x4_convert_i32x4(sum); }
};

// Likewise, if sums of bytes are exact. For machines whose second operand is signed, weights of 8 bits have 128
// subtracted.
template <int32_t Offset>
struct ByteRows {
  using Element = int8_t;
  static constexpr int32_t kOffset = Offset;
  static v128_t add(const int8_t* a, v128_t first, v128_t second, v128_t sum) {
    return dot_bytes(wasm_v128_load(a + 16), moved<Offset>(second),
                     dot_bytes(wasm_v128_load(a), moved<Offset>(first), sum));
  }
  static v128_t total(v128_t sum) { return wasm_f32x4_convert_i32x4(sum); }
};
#endif

// run(Rows{}): with the form of rounded rows that this machine multiplies.
template <int Bits, class Run>
inline void for_integers(const Run& run) {
#ifdef __wasm_relaxed_simd__
  switch (dot()) {
    case Dot::unsigned_bytes: return run(ByteRows<0>{});
    case Dot::signed_bytes: return run(ByteRows<Bits == 8 ? 128 : 0>{});
    default:
      if constexpr (Bits < 8) return run(PairRows{});
  }
#endif
  run(WordRows{});
}

// The start of row `row` in the prepared data.
template <class Element>
inline Element* prepared_row(const BlockProduct& p, int32_t row) {
  return static_cast<Element*>(p.prepared) + static_cast<size_t>(row) * p.padded_k();
}

// run(Bits): with the weights' bits as a constant.
template <int Bits>
struct BitsConstant {
  static constexpr int value = Bits;
};
template <class Run>
inline void for_bits(int32_t bits, const Run& run) {
  if (bits == 2) run(BitsConstant<2>{});
  else if (bits == 4) run(BitsConstant<4>{});
  else run(BitsConstant<8>{});
}

// run(Bits, Rows): likewise, and with the form of the rows.
template <class Run>
inline void for_rows(const BlockProduct& p, const Run& run) {
  for_bits(p.bits, [&](auto bits) {
    if (!p.integers) return run(bits, FloatRows{});
    for_integers<decltype(bits)::value>([&](auto rows) { run(bits, rows); });
  });
}

}  // namespace py_ort::PY_ORT_TARGET
