// Right operands for machines that add pairs of products of bytes in 16 bits, saturating (x86 without VNNI). This needs
// half as many instructions as factors of 16 bits, and most weights are so small that their sums fit. The excess of the
// others is subtracted and multiplied separately.
//
// A is in uint8. Among the weights in one sum of 16 bits, neither the positive nor the negative ones may add up to more
// than 128, since 255 * 128 is below 2^15.
#include <algorithm>
#include <cstring>
#include <utility>

#include <wasm_simd128.h>

#include "kernels/quantization/integer_product.h"

namespace py_ort {
namespace {

constexpr int32_t kFits = 128, kFour = 4 * I8Gemm::kColumns;

// Of [4 columns, 4 rows], the positive and the negative weights of each pair of rows, both as positive sums of 16 bits.
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
  // A bit for each sum that is too large, [4 columns, 2 pairs].
  uint32_t too_much(bool of_negative) const {
    return wasm_i16x8_bitmask(wasm_i16x8_gt(of_negative ? negative : positive, wasm_i16x8_splat(kFits)));
  }
};

// The excess to subtract from the weights of a span so that they fit, by pairs of rows of four columns.
class Excess {
 public:
  Excess(const PairWeights& weights, const int8_t* b, int64_t fours) : b_(b), fours_(fours) {
    for (const bool negative : {false, true})
      for (uint32_t sums = weights.too_much(negative); sums; sums &= sums - 1) {
        const int32_t sum = __builtin_ctz(sums);
        take(sum / 2, sum % 2, negative ? -1 : 1);
      }
  }
  // Calls f(index of the pair of rows in the span, [4 columns, 2 rows]) for each pair with excess.
  template <class F>
  void for_each_pair(F f) const {
    for (uint32_t left = found_; left; left &= left - 1) f(__builtin_ctz(left), by_[__builtin_ctz(left)]);
  }

 private:
  // Reduces the largest weights of a sum, which has a pair of rows of each four.
  void take(int32_t column, int32_t half, int32_t sign) {
    int32_t weights[4], most = -kFits;
    const int64_t count = 2 * fours_;
    for (int64_t i = 0; i < count; ++i) {
      weights[i] = sign * b_[i / 2 * kFour + column * 4 + half * 2 + i % 2];
      most += std::max(0, weights[i]);
    }
    while (most > 0) {
      int64_t at = 0;
      for (int64_t i = 1; i < count; ++i)
        if (weights[i] > weights[at]) at = i;
      const int32_t taken = std::min(most, weights[at]);
      weights[at] -= taken, most -= taken;
      const int64_t pair = at / 2 * 2 + half;
      by_[pair][column][at % 2] += static_cast<int16_t>(sign * taken);
      found_ |= 1U << pair;
    }
  }

  const int8_t* b_;
  int64_t fours_;
  uint32_t found_ = 0;
  int16_t by_[4][4][2] = {};
};

// Adds the excess of four columns from `b` on. Additions in 16 bits are those of the micro-kernel: spans within whole
// turns, then single fours. Out of line: until the next call a browser keeps running its quick form of a function.
[[gnu::noinline]] void find_excess(const int8_t* b, int64_t fours, int64_t span, std::vector<I8Excess>& found) {
  for (int64_t i = 0; i < fours;) {
    const int64_t count = fours / I8Gemm::kTurn * I8Gemm::kTurn > i ? span : 1;
    const int8_t* first = b + i * kFour;
    PairWeights weights = PairWeights::of(first);
    for (int64_t j = 1; j < count; ++j) weights += PairWeights::of(first + j * kFour);
    if (weights.too_much(false) || weights.too_much(true))
      Excess(weights, first, count).for_each_pair([&](int64_t pair, const int16_t (&by)[4][2]) {
        I8Excess& added = found.emplace_back();
        added.row = static_cast<int32_t>(2 * (2 * i + pair));
        std::memcpy(added.columns, by, sizeof by);
      });
    i += count;
  }
}

}  // namespace

void IntegerPanels::split() {
  bool pairs = false;
  run_microkernel(microkernels().i8_pairs, I8Pairs{&pairs});
  if (!pairs) return;
  const int64_t fours = (k_ + 3) / 4, groups = (n_ + 3) / 4;
  // In units of a row's step with four columns and four rows: the time of 16-bit factors, of pairs in spans of 1 and 2,
  // and of two rows of four columns with excess.
  constexpr double kWords = 1, kPairs[] = {0.7, 0.57}, kExcess = 0.45;
  const auto all = static_cast<double>(fours * groups);
  double best = kWords * all;
  for (const int32_t tried : {2, 1}) {
    std::vector<I8Excess> found;
    std::vector<int32_t> begins;
    const auto cost = [&] { return kPairs[tried - 1] * all + kExcess * static_cast<double>(found.size()); };
    for (int64_t group = 0; group < groups && cost() < best; ++group) {
      begins.push_back(static_cast<int32_t>(found.size()));
      find_excess(data() + group_at(group), fours, tried, found);
    }
    if (cost() >= best) continue;
    best = cost(), span_ = tried;
    begins.push_back(static_cast<int32_t>(found.size()));
    excess_ = std::move(found), excess_begins_ = std::move(begins);
  }
  take_out();
}

void IntegerPanels::take_out() {
  if (excess_.empty()) return;
  if (given_) own_.assign(given_, given_ + size(k_, n_));
  given_ = nullptr;
  for (size_t group = 0; group + 1 < excess_begins_.size(); ++group)
    for (int32_t i = excess_begins_[group]; i < excess_begins_[group + 1]; ++i) {
      const I8Excess& taken = excess_[static_cast<size_t>(i)];
      int8_t* rows = own_.data() + group_at(static_cast<int64_t>(group)) + taken.row / 4 * kFour + taken.row % 4;
      for (int64_t column = 0; column < 4; ++column)
        for (int64_t row = 0; row < 2; ++row)
          rows[column * 4 + row] = static_cast<int8_t>(rows[column * 4 + row] - taken.columns[column][row]);
    }
}

}  // namespace py_ort
