// Products with weights of few bits: the preparation of A's rows, and the form for few rows, as in a decoder's step. It
// unpacks weights in registers as they stream by, four columns at a time.
#include "py_ort/microkernels.h"

#include "microkernels/block_weights.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

// The largest magnitude and the sum of `count` floats.
void measure(const float* from, int32_t count, float& largest, float& sum) {
  v128_t most = simd::splat(0), all = simd::splat(0);
  int32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    most = wasm_f32x4_max(most, wasm_f32x4_abs(simd::load(from + i)));
    all = simd::add(all, simd::load(from + i));
  }
  const v128_t rest = load_some(from + i, count - i);
  largest = simd::max_lanes(wasm_f32x4_max(most, wasm_f32x4_abs(rest)));
  sum = simd::sum_lanes(simd::add(all, rest));
}

// Rounds to nearest even, times `factor`; returns the sum.
template <class Element>
int32_t round(const float* from, int32_t count, float factor, Element* to) {
  v128_t sum = wasm_i32x4_splat(0);
  for (int32_t i = 0; i < count; i += 4) {
    const v128_t scaled = simd::mul(load_some(from + i, count - i), simd::splat(factor));
    const v128_t steps = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(scaled));
    sum = wasm_i32x4_add(sum, steps);
    const v128_t words = wasm_i16x8_narrow_i32x4(steps, steps);
    if constexpr (sizeof(Element) == 2) wasm_v128_store64_lane(to + i, words, 0);
    else wasm_v128_store32_lane(to + i, wasm_i8x16_narrow_i16x8(words, words), 0);
  }
  return wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1) + wasm_i32x4_extract_lane(sum, 2) +
         wasm_i32x4_extract_lane(sum, 3);
}

template <class Rows>
[[gnu::noinline]] void prepare(const BlockProduct& p, int32_t row) {
  using Element = typename Rows::Element;
  const int32_t blocks = p.blocks();
  const float* from = p.a + static_cast<size_t>(row) * p.k;
  Element* to = prepared_row<Element>(p, row);
  __builtin_memset(to, 0, sizeof(Element) * p.padded_k());
  float* scale = p.row_scales() + static_cast<size_t>(row) * blocks;
  float* sum = p.row_sums() + static_cast<size_t>(row) * blocks;
  for (int32_t block = 0; block < blocks; ++block, from += p.block, to += p.padded_block()) {
    const int32_t left = p.k - block * p.block, count = left < p.block ? left : p.block;
    float largest;
    measure(from, count, largest, sum[block]);
    scale[block] = 1;
    if constexpr (sizeof(Element) == sizeof(float)) {
      __builtin_memcpy(to, from, sizeof(float) * count);
    } else {
      scale[block] = largest / 127.0f;
      // Below this bound 127 / largest is infinite; NaN stays.
      const float inverse = largest < 0x1p-121f ? 0.0f : 127.0f / largest;
      sum[block] = static_cast<float>(round(from, count, inverse, to)) * scale[block];
    }
  }
}

// Row `row` and columns `column` to column + 4 of C, or to the last one.
template <class Rows, int Bits>
[[gnu::noinline]] void multiply(const BlockProduct& p, float* scratch, int32_t row, int32_t column) {
  using Element = typename Rows::Element;
  constexpr int32_t kColumns = BlockProduct::kColumns;
  const int32_t blocks = p.blocks(), pieces = p.padded_block() / 32, piece_bytes = p.block * Bits / 8 / pieces;
  const Element* a = prepared_row<Element>(p, row);
  const float *row_scales = p.row_scales() + static_cast<size_t>(row) * blocks,
              *row_sums = p.row_sums() + static_cast<size_t>(row) * blocks;
  const uint8_t* b[kColumns];
  const float* scales[kColumns];
  v128_t totals[kColumns];
#pragma clang loop unroll(full)
  for (int c = 0; c < kColumns; ++c) {
    const int32_t from = column + c < p.n ? column + c : p.n - 1;
    b[c] = p.b + from * p.column_bytes();
    scales[c] = p.scales + static_cast<size_t>(from) * blocks;
    totals[c] = simd::splat(0);
  }
  for (int32_t block = 0; block < blocks; ++block) {
    v128_t sums[kColumns];
#pragma clang loop unroll(full)
    for (v128_t& sum : sums) sum = simd::splat(0);
    for (int32_t piece = 0; piece < pieces; ++piece, a += 32) {
#pragma clang loop unroll(full)
      for (int c = 0; c < kColumns; ++c) {
        v128_t first, second;
        unpack<Bits>(b[c], first, second);
        b[c] += piece_bytes;
        sums[c] = Rows::add(a, first, second, sums[c]);
      }
    }
    const v128_t mine = load_splat(row_scales + block);
#pragma clang loop unroll(full)
    for (int c = 0; c < kColumns; ++c)
      totals[c] = mul_add(Rows::total(sums[c]), simd::mul(load_splat(scales[c] + block), mine), totals[c]);
  }
#pragma clang loop unroll(disable)
  for (int32_t c = 0; c < kColumns && column + c < p.n; ++c) {
    const float *zeros = zero_points<Bits>(p, column + c, scratch),
                *scale = p.scales + static_cast<size_t>(column + c) * blocks;
    v128_t moved = simd::splat(0);
    const auto move = [&](int32_t i, int32_t count) {
      const v128_t zero = simd::sub(load_some(zeros + i, count), simd::splat(Rows::kOffset));
      moved = mul_add(simd::mul(load_some(scale + i, count), zero), load_some(row_sums + i, count), moved);
    };
    int32_t i = 0;
    for (; i + 4 <= blocks; i += 4) move(i, 4);
    if (i < blocks) move(i, blocks - i);
    p.c[static_cast<size_t>(row) * p.n + column + c] =
        simd::sum_lanes(simd::sub(totals[c], moved)) + (p.bias ? p.bias[column + c] : 0.0f);
  }
}

// The rows of four columns one after the other, so that the weights are in the cache.
template <class Rows, int Bits>
void run(const BlockProduct& p, float* scratch, int32_t begin, int32_t end) {
  fill_zero_points(p, scratch);
  for (int32_t unit = begin; unit < end; ++unit)
    for (int32_t row = 0; row < p.rows; ++row) multiply<Rows, Bits>(p, scratch, row, unit * BlockProduct::kColumns);
}

}  // namespace

PY_ORT_MICROKERNEL(block_rows)(const void* arguments, void*, int32_t begin, int32_t end) {
  const BlockProduct& p = *static_cast<const BlockProduct*>(arguments);
  for_rows(p, [&](auto, auto rows) {
    for (int32_t row = begin; row < end; ++row) prepare<decltype(rows)>(p, row);
  });
}

PY_ORT_MICROKERNEL(block_columns_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const BlockProduct& p = *static_cast<const BlockProduct*>(arguments);
  for_rows(p, [&](auto bits, auto rows) {
    run<decltype(rows), decltype(bits)::value>(p, static_cast<float*>(scratch), begin, end);
  });
}

}  // namespace py_ort::PY_ORT_TARGET
