// The arguments of the micro-kernels of 8-bit integers: plain data, like microkernels.h.
#pragma once

#include "py_ort/microkernels.h"

namespace py_ort {

// How 32-bit sums [rows, n] are stored: unchanged, as floats, or as bytes again. Arrays of [n] are readable 16 bytes
// past their end, here and below.
struct I8End {
  enum Form : int32_t { sums, floats, bytes, signed_bytes };
  int32_t n = 0;
  const int32_t* bias = nullptr;  // [n], or null
  Form form = sums;
  const float* scale = nullptr;       // [n]: for floats and bytes
  const float* float_bias = nullptr;  // [n], or null: for floats, like the epilogue
  Epilogue epilogue;
  int32_t c_zero = 0;  // for bytes
  void* c = nullptr;
  int32_t c_stride = 0;  // in elements
};

// The excess of two rows of B over their bytes, in four columns.
struct I8Excess {
  int32_t row;  // the first of the two, even
  int16_t columns[4][2];
};

// Products of 8-bit integers with zero points: (A - a_zero)(B - b_zeros) + bias. A's rows are as F32Gemm's, in uint8;
// outside of the image a window reads its zero point. B is stored as int8 in zero-filled panels of 8 columns by fours
// of k: [ceil(n/8), ceil(taps * k / 4), 8, 4].
struct I8Gemm : I8End {
  int32_t rows = 0, k = 0, taps = 1;
  const uint8_t* a = nullptr;
  int32_t a_stride = 0;
  uint8_t flip = 0;    // 0x80 converts an A in int8 to uint8
  int32_t a_zero = 0;  // of A in uint8
  const Window* window = nullptr;
  const int8_t* b = nullptr;
  const int32_t* b_sums = nullptr;   // [n]: of each column
  const int32_t* b_zeros = nullptr;  // [n], or null
  // Some machines add pairs of products in 16 bits (I8Pairs). B may then be changed so that `span` fours of k fit, and
  // the part that would overflow is excess. For each group of four columns: excess[excess_begins[i]] to
  // excess[excess_begins[i + 1]].
  int32_t span = 0;  // 1, 2, or 0: B is unchanged
  const I8Excess* excess = nullptr;
  const int32_t* excess_begins = nullptr;  // null: there is none
  int32_t column_pieces = 1;               // units = ceil(rows / 6) * column_pieces

  static constexpr int32_t kRows = 6, kColumns = 8;
  static constexpr int32_t kTurn = 4;  // spans are within whole turns of so many fours; single fours follow
  // Skips the columns before `first`, a multiple of 8.
  void skip_columns(int32_t first) {
    n -= first;
    b += static_cast<size_t>(first) * padded_k(), b_sums += first;
    if (b_zeros) b_zeros += first;
    if (excess_begins) excess_begins += first / 4;
  }
  int32_t padded_k() const { return (taps * k + 3) / 4 * 4; }
  int32_t tiles() const { return (rows + kRows - 1) / kRows; }
  // Tiles in a block. Its elements have up to 16 bits, and as many again where excess is multiplied.
  int32_t block() const {
    return tiles_in_block(tiles(), static_cast<int64_t>(kRows) * padded_k() * (excess_begins ? 3 : 2));
  }
  int32_t units() const { return tiles() * column_pieces; }
  // For the current rows, k and taps.
  size_t scratch_bytes() const {
    const size_t row = padded_k() * (sizeof(int16_t) + (excess_begins ? 1 : 0)) + sizeof(int32_t);
    return static_cast<size_t>(kRows) * block() * row + 64;
  }
};

// Floats to 8 bits by one scale and zero point. Units: blocks of kBlock floats.
struct I8Quantize {
  const float* x = nullptr;
  int64_t count = 0;
  float scale = 1, zero = 0;
  bool is_signed = false;
  void* y = nullptr;  // int8 or uint8

  static constexpr int32_t kBlock = 1024;
  int32_t units() const { return static_cast<int32_t>((count + kBlock - 1) / kBlock); }
  size_t scratch_bytes() const { return 0; }
};

// Maps bytes to bytes: by a table of A, or by sums or products of A and B, in steps. Rows have n elements and begin
// a_row and b_row apart in A and B; with a step of 0 one element is repeated for the whole row. Units: blocks of kBlock
// elements of a row.
struct I8Map {
  enum Kind : int32_t { look_up, sum, product } kind = look_up;
  const uint8_t *a = nullptr, *b = nullptr;  // b: the table of 256, or the second operand
  uint8_t* y = nullptr;
  int64_t rows = 1, n = 0, a_row = 0, b_row = 0;
  int32_t a_step = 1, b_step = 1;
  bool is_signed = false;                               // for a, b and y
  float a_scale = 0, b_scale = 0, fixed = 0;            // sum: fixed + a a_scale + b b_scale
  float a_zero = 0, b_zero = 0, scale = 0, y_zero = 0;  // product: (a - a_zero) (b - b_zero) scale + y_zero

  static constexpr int32_t kBlock = 4096;
  int64_t blocks() const { return (n + kBlock - 1) / kBlock; }
  int32_t units() const { return static_cast<int32_t>(rows * blocks()); }
  size_t scratch_bytes() const { return 0; }
};

// Tests whether pairs of products of 8-bit integers are fastest as sums of 16 bits, which saturate. Units: 1.
struct I8Pairs {
  bool* quickest = nullptr;

  int32_t units() const { return 1; }
  size_t scratch_bytes() const { return 0; }
};

// A convolution of each channel separately; n channels, rows are output pixels. Units: groups of 4 pixels.
struct I8Depthwise : I8End {
  const Window* window = nullptr;
  const uint8_t* x = nullptr;
  uint8_t flip = 0;                 // 0x80 converts an x in int8 to uint8
  int32_t x_zero = 0;               // of x in uint8
  const uint8_t* zeros = nullptr;   // [n]: zero points, like x
  const int16_t* w = nullptr;       // minus their zero points: [ceil(taps/2), ceil(n/8) * 8, 2], zero-filled
  const int32_t* w_sums = nullptr;  // [n]: of each channel

  static constexpr int32_t kPixels = 4;
  int32_t units() const { return (window->pixels_out() + kPixels - 1) / kPixels; }
  size_t scratch_bytes() const { return static_cast<size_t>(kPixels) * (window->taps() + 1) * sizeof(uint8_t*); }
};

}  // namespace py_ort
