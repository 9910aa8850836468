// Right operands of integer products, packed: panels of eight columns, in which four rows are next to each other.
// Python packs those of constants (providers/wasm/packing.py).
#include <algorithm>

#include <wasm_simd128.h>

#include "kernels/quantization/integer_product.h"

namespace py_ort {
namespace {

constexpr int64_t kPanel = I8Gemm::kColumns, kFour = 4 * kPanel;

// The sums of four columns over four rows.
v128_t columns_of(v128_t bytes) { return wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(bytes)); }

// Packs eight columns into a panel.
class Packing {
 public:
  Packing(const uint8_t* from, int64_t row_step, int64_t column_step, int64_t rows, uint8_t flip, int8_t* panel,
          int32_t* sums)
      : from_(from), row_step_(row_step), column_step_(column_step), rows_(rows), flip_(flip), panel_(panel),
        sums_(sums) {}

  void run(int64_t width) {
    int64_t done = 0;
    if (width == kPanel && column_step_ == 1) done = rows_of_neighbors();
    for (int64_t i = done; i < rows_; ++i) {
      const uint8_t* row = from_ + i * row_step_;
      int8_t* to = panel_ + i / 4 * kFour + i % 4;
      for (int64_t c = 0; c < width; ++c) {
        to[c * 4] = static_cast<int8_t>(row[c * column_step_] ^ flip_);
        sums_[c] += to[c * 4];
      }
    }
  }

 private:
  // Stores four columns of four rows.
  void put(v128_t bytes, int64_t four, int64_t half) {
    bytes = wasm_v128_xor(bytes, wasm_i8x16_splat(static_cast<int8_t>(flip_)));
    wasm_v128_store(panel_ + four * kFour + half * 16, bytes);
    int32_t* sums = sums_ + half * 4;
    wasm_v128_store(sums, wasm_i32x4_add(wasm_v128_load(sums), columns_of(bytes)));
  }

  // For rows with contiguous columns: four rows at a time. Returns the number of packed rows.
  int64_t rows_of_neighbors() {
    int64_t i = 0;
    for (; i + 4 <= rows_; i += 4) {
      const auto row = [&](int64_t r) { return wasm_v128_load64_zero(from_ + (i + r) * row_step_); };
      const v128_t first = wasm_i8x16_shuffle(row(0), row(1), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const v128_t second = wasm_i8x16_shuffle(row(2), row(3), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      put(wasm_i16x8_shuffle(first, second, 0, 8, 1, 9, 2, 10, 3, 11), i / 4, 0);
      put(wasm_i16x8_shuffle(first, second, 4, 12, 5, 13, 6, 14, 7, 15), i / 4, 1);
    }
    return i;
  }

  const uint8_t* from_;
  int64_t row_step_, column_step_, rows_;
  uint8_t flip_;
  int8_t* panel_;
  int32_t* sums_;
};

}  // namespace

void IntegerPanels::clear(int64_t rows, int64_t columns) {
  *this = {};
  n_ = static_cast<int32_t>(columns), k_ = static_cast<int32_t>(rows);
  own_.assign(static_cast<size_t>(size(rows, columns)), 0);
  sums_.assign(static_cast<size_t>(columns + 4), 0);
}

void IntegerPanels::fill(const Tensor& tensor, int64_t first, int64_t rows, int64_t columns, int64_t row_step,
                         int64_t column_step) {
  clear(rows, columns);
  put(0, tensor, first, columns, row_step, column_step);
  split();
}

void IntegerPanels::put(int64_t at, const Tensor& tensor, int64_t first, int64_t columns, int64_t row_step,
                        int64_t column_step) {
  const uint8_t* from = tensor.data<uint8_t>() + first;
  const int64_t fours = (k_ + 3) / 4;
  for (int64_t j = 0; j < columns; j += kPanel) {
    Packing packing(from + j * column_step, row_step, column_step, k_, flip_to_signed(tensor.dtype),
                    own_.data() + (at + j) / kPanel * fours * kFour, sums_.data() + at + j);
    packing.run(std::min(kPanel, columns - j));
  }
}

void IntegerPanels::take(const int8_t* packed, int64_t rows, int64_t columns) {
  *this = {};
  given_ = packed, n_ = static_cast<int32_t>(columns), k_ = static_cast<int32_t>(rows);
  sums_.assign(static_cast<size_t>((columns + 7) / 8 * 8 + 4), 0);
  const int64_t fours = (rows + 3) / 4;
  for (int64_t j = 0; j < columns; j += kPanel) {
    v128_t sums[] = {wasm_i32x4_splat(0), wasm_i32x4_splat(0)};
    for (int64_t i = 0; i < fours; ++i, packed += kFour)
      for (const int64_t half : {0, 1})
        sums[half] = wasm_i32x4_add(sums[half], columns_of(wasm_v128_load(packed + half * 16)));
    wasm_v128_store(sums_.data() + j, sums[0]), wasm_v128_store(sums_.data() + j + 4, sums[1]);
  }
  split();
}

void IntegerPanels::apply(I8Gemm& g) const {
  g.n = n_, g.b = data(), g.b_sums = sums_.data();
  g.span = span_, g.excess = excess_.data(), g.excess_begins = excess_.empty() ? nullptr : excess_begins_.data();
}

}  // namespace py_ort
