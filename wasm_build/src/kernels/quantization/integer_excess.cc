// Right operands for machines that add pairs of products of bytes in 16 bits, saturating (x86 without VNNI): half as
// many instructions as with factors of 16 bits, and most weights are so small that their sums fit. What does not fit is
// taken out and multiplied apart.
//
// A is in uint8: of the weights that meet in one sum of 16 bits, neither the positive nor the negative ones may be more
// than 128 together, since 255 * 128 is below 2^15.
#include <algorithm>
#include <utility>

#include <wasm_simd128.h>

#include "kernels/quantization/integer_product.h"

namespace py_ort {
namespace {

constexpr int32_t kFits = 128, kFour = 4 * I8Gemm::kColumns;

// The positive and the negative weights of each pair of [4 columns, 4 rows], both as positive sums of 16 bits.
struct PairWeights {
  v128_t positive, negative;
  static PairWeights of(const int8_t* b) {
    const v128_t w = wasm_v128_load(b), zero = wasm_i8x16_splat(0);
    return {wasm_u16x8_extadd_pairwise_u8x16(wasm_i8x16_max(w, zero)),
            wasm_u16x8_extadd_pairwise_u8x16(wasm_i8x16_neg(wasm_i8x16_min(w, zero)))};
  }
  void operator+=(const PairWeights& other) {
    positive = wasm_i16x8_add(positive, other.positive), negative = wasm_i16x8_add(negative, other.negative);
  }
  v128_t too_much() const {
    const v128_t fits = wasm_i16x8_splat(kFits);
    return wasm_v128_or(wasm_i16x8_gt(positive, fits), wasm_i16x8_gt(negative, fits));
  }
};

// Calls f(fours of rows before these, how many there are) for what is added in 16 bits and too much, four columns from
// `b` on. As the micro-kernel does: spans of 2 within whole sixteens of rows, single fours behind them.
template <class F>
void for_each_too_much(const int8_t* b, int64_t fours, int64_t span, F f) {
  for (int64_t i = 0; i < fours;) {
    const int64_t count = fours / 4 * 4 > i ? span : 1;
    PairWeights weights = PairWeights::of(b + i * kFour);
    for (int64_t j = 1; j < count; ++j) weights += PairWeights::of(b + (i + j) * kFour);
    if (wasm_v128_any_true(weights.too_much())) f(i, count);
    i += count;
  }
}

// What must be taken from the weights of a span, [rows, 4 columns], for them to fit; zeros elsewhere.
struct Excess {
  int32_t by[8][4] = {};

  Excess(const int8_t* b, int64_t fours) {
    for (int64_t column = 0; column < 4; ++column)
      for (int64_t half = 0; half < 4; half += 2) {
        // Those that meet in one sum: pairs, of which each lies four rows behind the one before.
        int32_t weights[4];
        const int64_t count = 2 * fours;
        for (int64_t i = 0; i < count; ++i) weights[i] = b[i / 2 * kFour + column * 4 + half + i % 2];
        for (const int32_t sign : {1, -1})
          while (const int32_t most = too_much(weights, count, sign)) {
            const int64_t at = std::max_element(weights, weights + count, [=](int32_t x, int32_t y) {
              return sign * x < sign * y;
            }) - weights;
            const int32_t taken = sign * std::min(most, sign * weights[at]);
            weights[at] -= taken;
            by[at / 2 * 4 + half + at % 2][column] += taken;
          }
      }
  }
  bool in_row(int64_t row) const {
    return std::any_of(by[row], by[row] + 4, [](int32_t excess) { return excess != 0; });
  }

 private:
  static int32_t too_much(const int32_t* weights, int64_t count, int32_t sign) {
    int32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::max(0, sign * weights[i]);
    return std::max(0, sum - kFits);
  }
};

}  // namespace

void IntegerPanels::split() {
  bool pairs = false;
  run_microkernel(microkernels().i8_pairs, I8Pairs{&pairs});
  if (!pairs) return;
  const int64_t fours = (k + 3) / 4, groups = (n + 3) / 4;
  const auto of_group = [&](int64_t group) { return data.data() + group / 2 * fours * kFour + group % 2 * 16; };
  // By the time of a row's step with four columns and four rows: 16-bit factors, pairs in spans of 1 and 2, and what a
  // row of four columns with excess costs.
  constexpr double kWords = 1, kPairs[] = {0.7, 0.57}, kExcess = 0.8;
  const auto all = static_cast<double>(fours * groups);
  double best = kWords * all;
  for (const int32_t tried : {2, 1}) {
    std::vector<I8Excess> found;
    std::vector<int32_t> begins;
    const auto cost = [&] { return kPairs[tried - 1] * all + kExcess * static_cast<double>(found.size()); };
    for (int64_t group = 0; group < groups && cost() < best; ++group) {
      begins.push_back(static_cast<int32_t>(found.size()));
      for_each_too_much(of_group(group), fours, tried, [&](int64_t first, int64_t count) {
        const Excess taken(of_group(group) + first * kFour, count);
        for (int64_t row = 0; row < 4 * count; ++row) {
          if (!taken.in_row(row)) continue;
          I8Excess& added = found.emplace_back();
          added.row = static_cast<int32_t>(4 * first + row);
          std::copy_n(taken.by[row], 4, added.columns);
        }
      });
    }
    if (cost() >= best) continue;
    best = cost(), span = tried;
    begins.push_back(static_cast<int32_t>(found.size()));
    excess = std::move(found), excess_begins = std::move(begins);
  }
  for (int64_t group = 0; span && group < groups; ++group)
    for (int32_t i = excess_begins[static_cast<size_t>(group)]; i < excess_begins[static_cast<size_t>(group) + 1];
         ++i) {
      const I8Excess& taken = excess[static_cast<size_t>(i)];
      int8_t* row = of_group(group) + taken.row / 4 * kFour + taken.row % 4;
      for (int64_t column = 0; column < 4; ++column) row[column * 4] -= taken.columns[column];
    }
}

}  // namespace py_ort
