// Product and convolution of 8-bit integers: tiles of 6 rows by 8 columns, 6 by 4 or 4 by 4, 32-bit sums.
//
// Rows of A are first copied to scratch, as uint8 or widened to 16 bits, depending on the machine's products (`Dot`).
#include "microkernels/i8_dot.h"
#include "microkernels/i8_end.h"
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kRows = I8Gemm::kRows, kColumns = I8Gemm::kColumns;
constexpr int32_t kFour = 4 * kColumns;  // bytes of B, [8, 4], from four values of k to the next four

// The sums of one row of a tile: four values of k times four of eight columns. A turn of the loop does kTurn fours of
// k: one is best, as in f32_gemm, but moving pointers costs more where a four takes more instructions.
struct ByteSums {
  static constexpr int32_t kTileRows = 6, kTileColumns = 8, kSpan = 1, kLoads = 2, kTurn = 1;
  using Element = uint8_t;
  v128_t sums[2];
  template <int32_t Span>
  static void load(const int8_t* b, v128_t* w) {
    w[0] = wasm_v128_load(b), w[1] = wasm_v128_load(b + 16);
  }
  template <int32_t Span>
  void add(const uint8_t* a, const v128_t* w) {
    const v128_t x = wasm_v128_load32_splat(a);
    sums[0] = dot_bytes(w[0], x, sums[0]);
    sums[1] = dot_bytes(w[1], x, sums[1]);
  }
  v128_t total(int32_t four) const { return sums[four]; }
};

// The same for four columns, if pairs of products are sums of 16 bits: Span fours of k are added before the sums are
// widened to 32 bits.
template <int32_t Most>
struct PairSums {
  static constexpr int32_t kTileRows = 6, kTileColumns = 4, kSpan = Most, kLoads = Most, kTurn = I8Gemm::kTurn;
  using Element = uint8_t;
  v128_t sums[1];
  template <int32_t Span>
  static void load(const int8_t* b, v128_t* w) {
#pragma clang loop unroll(full)
    for (int32_t i = 0; i < Span; ++i) w[i] = wasm_v128_load(b + i * kFour);
  }
  template <int32_t Span>
  void add(const uint8_t* a, const v128_t* w) {
    v128_t pairs = dot_pairs(w[0], wasm_v128_load32_splat(a));
#pragma clang loop unroll(full)
    for (int32_t i = 1; i < Span; ++i)
      pairs = wasm_i16x8_add(pairs, dot_pairs(w[i], wasm_v128_load32_splat(a + 4 * i)));
    sums[0] = wasm_i32x4_add(sums[0], wasm_i32x4_dot_i16x8(pairs, wasm_i16x8_splat(1)));
  }
  v128_t total(int32_t) const { return sums[0]; }
};

// The same in 16 bits and for four columns: each sum is two lanes until the end. More rows or columns would not fit 16
// registers.
struct WordSums {
  static constexpr int32_t kTileRows = 4, kTileColumns = 4, kSpan = 1, kLoads = 2, kTurn = 1;
  using Element = int16_t;
  v128_t sums[2];
  template <int32_t Span>
  static void load(const int8_t* b, v128_t* w) {
    w[0] = wasm_i16x8_load8x8(b), w[1] = wasm_i16x8_load8x8(b + 8);
  }
  template <int32_t Span>
  void add(const int16_t* a, const v128_t* w) {
    const v128_t x = wasm_v128_load64_splat(a);
    sums[0] = wasm_i32x4_add(sums[0], wasm_i32x4_dot_i16x8(w[0], x));
    sums[1] = wasm_i32x4_add(sums[1], wasm_i32x4_dot_i16x8(w[1], x));
  }
  v128_t total(int32_t) const {
    return wasm_i32x4_add(wasm_i32x4_shuffle(sums[0], sums[1], 0, 2, 4, 6),
                          wasm_i32x4_shuffle(sums[0], sums[1], 1, 3, 5, 7));
  }
};

// The rows of a block of tiles.
template <class Element>
class Block {
 public:
  // `most`: the most tiles of the block.
  Block(const I8Gemm& g, void* scratch, uint8_t flip, int32_t most)
      : g_(g), flip_(flip), k_(g.taps * g.k), row_sums_(static_cast<int32_t*>(scratch)),
        rows_(reinterpret_cast<Element*>(row_sums_ + static_cast<size_t>(kRows) * most)),
        words_(reinterpret_cast<int16_t*>(rows_ + static_cast<size_t>(kRows) * most * g.padded_k() + 16)) {}

  void fill(int32_t row, int32_t rows) {
    if (g_.window) {
      OutputPixel pixel(*g_.window, row);
      for (int32_t r = 0; r < rows; ++r, pixel.next(*g_.window)) gather(pixel, row_at(r)), finish_row(r);
    } else {
      for (int32_t r = 0; r < rows; ++r)
        copy(g_.a + static_cast<size_t>(row + r) * g_.a_stride, k_, row_at(r)), finish_row(r);
    }
  }

  // `rows` rows, from `row` of C on, with a panel of B.
  template <class Sums>
  void multiply(int32_t row, int32_t rows, int32_t panel) const {
    for (int32_t column = 0; column < kColumns && panel * kColumns + column < g_.n; column += Sums::kTileColumns) {
      int32_t first = 0;
      for (; rows - first >= Sums::kTileRows; first += Sums::kTileRows)
        this->template multiply_tile<Sums, Sums::kTileRows>(row, first, panel, column);
      if constexpr (Sums::kTileRows > 4)
        if (rows - first >= 4) this->template multiply_tile<Sums, 4>(row, first, panel, column), first += 4;
      if (rows - first >= 2) this->template multiply_tile<Sums, 2>(row, first, panel, column), first += 2;
      if (rows > first) this->template multiply_tile<Sums, 1>(row, first, panel, column);
    }
  }

 private:
  Element* row_at(int32_t row) const { return rows_ + static_cast<size_t>(row) * g_.padded_k(); }
  void finish_row(int32_t row) {
    row_sums_[row] = g_.b_zeros ? sum(row_at(row)) : 0;
    if (!g_.excess_begins) return;
    int16_t* words = words_ + static_cast<size_t>(row) * g_.padded_k();
    for (int32_t i = 0; i < g_.padded_k(); i += 8)
      wasm_v128_store(words + i, wasm_u16x8_load8x8(reinterpret_cast<const uint8_t*>(row_at(row)) + i));
  }

  template <class Sums, int R>
  void multiply_tile(int32_t row, int32_t first, int32_t panel, int32_t start) const {
    const Element* a[R];
    Sums tile[R];
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      a[r] = row_at(first + r);
      for (v128_t& sum : tile[r].sums) sum = wasm_i32x4_splat(0);
    }
    const int8_t* b = g_.b + static_cast<size_t>(panel) * g_.padded_k() * kColumns + start * 4;
    const auto step = [&]<int32_t Span>(int32_t ahead) {
      v128_t w[Sums::kLoads];
      Sums::template load<Span>(b + ahead * kFour, w);
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) tile[r].template add<Span>(a[r] + 4 * ahead, w);
    };
    const auto pass = [&](int32_t fours) {
      b += fours * kFour;
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) {
        a[r] += 4 * fours;
        asm("" : "+r"(a[r]));  // keeps a separate pointer: otherwise each load computes its address
      }
    };
    int32_t left = g_.padded_k() / 4;
#pragma clang loop unroll(disable)
    for (; left >= Sums::kTurn; left -= Sums::kTurn, pass(Sums::kTurn)) {
#pragma clang loop unroll(full)
      for (int32_t ahead = 0; ahead < Sums::kTurn; ahead += Sums::kSpan) step.template operator()<Sums::kSpan>(ahead);
    }
    if constexpr (Sums::kTurn > 1)
      for (; left > 0; --left, pass(1)) step.template operator()<1>(0);
#pragma clang loop unroll(full)
    for (int32_t four = 0; four < Sums::kTileColumns / 4; ++four) {
      const int32_t column = panel * kColumns + start + four * 4;
      if (column >= g_.n) return;
      const v128_t begin = first_sums(g_, g_.b_sums, zero(), column);
      v128_t values[R];
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) values[r] = wasm_i32x4_add(tile[r].total(four), begin);
      if (g_.excess_begins) add_excess<R>(first, column, values);
      if (g_.b_zeros) {
        const v128_t zeros = wasm_v128_load(g_.b_zeros + column);
#pragma clang loop unroll(full)
        for (int r = 0; r < R; ++r)
          values[r] = wasm_i32x4_sub(values[r], wasm_i32x4_mul(zeros, wasm_i32x4_splat(row_sums_[first + r])));
      }
      finish(g_, values, R, row + first, column);
    }
  }

  template <int R>
  void add_excess(int32_t first, int32_t column, v128_t* values) const {
    const int16_t* rows = words_ + static_cast<size_t>(first) * g_.padded_k();
    for (int32_t i = g_.excess_begins[column / 4]; i < g_.excess_begins[column / 4 + 1]; ++i) {
      const v128_t columns = wasm_v128_load(g_.excess[i].columns);
      const int16_t* a = rows + g_.excess[i].row;
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r, a += g_.padded_k())
        values[r] = wasm_i32x4_add(values[r], wasm_i32x4_dot_i16x8(wasm_v128_load32_splat(a), columns));
    }
  }

  // A's zero point in the form of the multiplication.
  int32_t zero() const { return flip_ == g_.flip ? g_.a_zero : g_.a_zero - 128; }

  static void put(v128_t bytes, uint8_t* to) { wasm_v128_store(to, bytes); }
  static void put(v128_t bytes, int16_t* to) {
    wasm_v128_store(to, wasm_u16x8_extend_low_u8x16(bytes));
    wasm_v128_store(to + 8, wasm_u16x8_extend_high_u8x16(bytes));
  }
  // Whole 16s: bytes past the end are overwritten, or multiplied by zeros of B.
  void copy(const uint8_t* from, int32_t count, Element* to) const {
    const v128_t flip = wasm_i8x16_splat(static_cast<int8_t>(flip_));
    for (int32_t i = 0; i < count; i += 16) put(wasm_v128_xor(wasm_v128_load(from + i), flip), to + i);
  }
  void fill_zero(int32_t count, Element* to) const {
    const v128_t zeros = wasm_i8x16_splat(static_cast<int8_t>(g_.a_zero ^ (flip_ ^ g_.flip)));
    for (int32_t i = 0; i < count; i += 16) put(zeros, to + i);
  }

  // One row of a convolution's A, its taps one after the other.
  void gather(const OutputPixel& pixel, Element* to) const {
    const Window& w = *g_.window;
    const int32_t first = pixel.at[2] * w.stride[2] - w.pad[2];
    // If no column of the window leaves the image, the pieces of a window row are contiguous.
    if (w.pixel_stride == g_.k && w.dilation[2] == 1 && first >= 0 && first + w.kernel[2] <= w.in[2]) {
      const int32_t run = w.kernel[2] * g_.k;
      for_window_rows(w, pixel, g_.a, [&](const uint8_t* row) {
        if (row) copy(row + first * g_.k, run, to);
        else fill_zero(run, to);
        to += run;
      });
    } else {
      for_taps(w, pixel, g_.a, [&](int32_t, const uint8_t* from) {
        if (from) copy(from, g_.k, to);
        else fill_zero(g_.k, to);
        to += g_.k;
      });
    }
  }

  // The sum of a row's elements, minus their zero point.
  int32_t sum(const Element* row) const {
    const uint8_t shown = flip_ ^ g_.flip;
    int32_t total = -k_ * g_.a_zero;
    for (int32_t i = 0; i < k_; ++i) total += static_cast<uint8_t>(row[i] ^ shown);
    return total;
  }

  const I8Gemm& g_;
  uint8_t flip_;  // stored is A's byte ^ flip_: the number, or, if A's flip differs, the number minus 128
  int32_t k_;
  int32_t* row_sums_;
  Element* rows_;
  int16_t* words_;  // the same rows, for the product with excess
};

template <class Sums>
[[gnu::noinline]] void run(const I8Gemm& g, void* scratch, uint8_t flip, int32_t begin, int32_t end) {
  const int32_t tiles = g.tiles(), most = g.block(), panels = (g.n + kColumns - 1) / kColumns;
  Block<typename Sums::Element> block(g, scratch, flip, most);
  for (int32_t unit = begin; unit < end;) {
    const int32_t piece = unit / tiles, first = unit % tiles;
    int32_t count = most;
    if (count > tiles - first) count = tiles - first;
    if (count > end - unit) count = end - unit;
    const int32_t row = first * kRows, rows = count * kRows < g.rows - row ? count * kRows : g.rows - row;
    block.fill(row, rows);
    const int32_t last_panel = panels * (piece + 1) / g.column_pieces;
    for (int32_t panel = panels * piece / g.column_pieces; panel < last_panel; ++panel)
      block.template multiply<Sums>(row, rows, panel);
    unit += count;
  }
}

}  // namespace

PY_ORT_MICROKERNEL(i8_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const I8Gemm& g = *static_cast<const I8Gemm*>(arguments);
  switch (dot()) {
    case Dot::unsigned_bytes: return run<ByteSums>(g, scratch, g.flip, begin, end);
    case Dot::signed_bytes: return run<ByteSums>(g, scratch, g.flip ^ 0x80, begin, end);
    case Dot::unsigned_pairs:
      if (g.span == 2) return run<PairSums<2>>(g, scratch, g.flip, begin, end);
      if (g.span == 1) return run<PairSums<1>>(g, scratch, g.flip, begin, end);
      [[fallthrough]];
    default: return run<WordSums>(g, scratch, g.flip, begin, end);
  }
}

PY_ORT_MICROKERNEL(i8_pairs)(const void* arguments, void*, int32_t, int32_t) {
  *static_cast<const I8Pairs*>(arguments)->quickest = dot() == Dot::unsigned_pairs;
}

}  // namespace py_ort::PY_ORT_TARGET
