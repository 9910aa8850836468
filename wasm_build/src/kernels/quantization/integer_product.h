// Products of 8-bit integers with zero points, and the ends of quantized operators.
#pragma once

#include <vector>

#include "py_ort/integer_products.h"
#include "py_ort/kernel.h"

namespace py_ort {

// Element i of an int8 or uint8 tensor.
int32_t integer_at(const Tensor& tensor, int64_t i);

// Bytes in the micro-kernels' form: the left operand in uint8, the right one in int8.
inline uint8_t flip_to_unsigned(DType dtype) { return dtype == DType::int8 ? 0x80 : 0; }
inline uint8_t flip_to_signed(DType dtype) { return dtype == DType::uint8 ? 0x80 : 0; }
// A zero point, converted like the numbers.
inline int32_t zero_of_unsigned(DType dtype, int32_t zero) { return dtype == DType::int8 ? zero + 128 : zero; }
inline int32_t zero_of_signed(DType dtype, int32_t zero) { return dtype == DType::uint8 ? zero - 128 : zero; }

// The right operand, [k, n], in I8Gemm's form.
class IntegerPanels {
 public:
  // Sets this size, all zeros.
  void clear(int64_t rows, int64_t columns);
  // Writes columns from `at` on, a multiple of 8. Element (row, column) is that of `tensor` at first + row * row_step +
  // column * column_step.
  void put(int64_t at, const Tensor& tensor, int64_t first, int64_t columns, int64_t row_step, int64_t column_step);
  // Call after all columns are put: subtracts the excess for machines that add pairs of products in 16 bits, if that is
  // faster on this machine.
  void split();
  // All three steps.
  void fill(const Tensor& tensor, int64_t first, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step);
  // Uses columns that Python packed, without a copy unless there is excess to subtract.
  void take(const int8_t* packed, int64_t rows, int64_t columns);
  void apply(I8Gemm& g) const;  // makes this g's B
  int32_t rows() const { return k_; }
  int32_t columns() const { return n_; }
  static int64_t size(int64_t rows, int64_t columns) { return (columns + 7) / 8 * ((rows + 3) / 4) * 32; }

 private:
  const int8_t* data() const { return given_ ? given_ : own_.data(); }
  // The start of four columns, of which a panel has two groups.
  int64_t group_at(int64_t group) const { return group / 2 * ((k_ + 3) / 4) * 32 + group % 2 * 16; }
  void take_out();

  const int8_t* given_ = nullptr;
  std::vector<int8_t> own_;
  std::vector<int32_t> sums_;  // of each column, and padding
  int32_t n_ = 0, k_ = 0;
  int32_t span_ = 0;
  std::vector<I8Excess> excess_;
  std::vector<int32_t> excess_begins_;
};

// The one number, or the number for each row or column, of a scale or zero point. A missing zero point is 0.
class PerAxis {
 public:
  static Status read(const Tensor* tensor, int64_t size, std::string_view what, PerAxis& out);
  float operator[](int64_t i) const { return values_[values_.size() == 1 ? 0 : static_cast<size_t>(i)]; }
  int32_t integer(int64_t i) const { return static_cast<int32_t>((*this)[i]); }
  bool one() const { return values_.size() == 1; }
  bool constant() const { return constant_; }  // the same in all runs

 private:
  std::vector<float> values_{0.0f};
  bool constant_ = true;
};

// The end of a product, column by column. Arrays are readable 16 bytes past their end.
class IntegerEnd {
 public:
  // zero(column): B's zero points.
  template <class Zero>
  void zeros(int64_t n, DType b, const Zero& zero) {
    zeros_.clear();
    for (int64_t j = 0; j < n; ++j) {
      const int32_t moved = zero_of_signed(b, zero(j));
      if (moved && zeros_.empty()) zeros_.assign(static_cast<size_t>(n + 4), 0);
      if (moved) zeros_[static_cast<size_t>(j)] = moved;
    }
  }
  // scale(column): from sums to floats, or to the result's quantization steps.
  template <class Scale>
  void scales(int64_t n, const Scale& scale) {
    scales_.resize(static_cast<size_t>(n + 4));
    for (int64_t j = 0; j < n; ++j) scales_[static_cast<size_t>(j)] = scale(j);
  }
  // Results are bytes with a zero point.
  void quantize(DType dtype, int32_t zero) {
    form = dtype == DType::uint8 ? I8End::bytes : I8End::signed_bytes;
    c_zero = zero;
  }
  I8End::Form form = I8End::sums;
  int32_t c_zero = 0;
  const int32_t* bias = nullptr;
  const float* float_bias = nullptr;
  Epilogue epilogue;

  // For columns from `first` on.
  void apply(I8End& g, int64_t first = 0) const {
    g.form = form, g.c_zero = c_zero, g.epilogue = epilogue;
    g.bias = bias ? bias + first : nullptr, g.float_bias = float_bias ? float_bias + first : nullptr;
    g.scale = scales_.empty() ? nullptr : scales_.data() + first;
  }
  const int32_t* b_zeros(int64_t first = 0) const { return zeros_.empty() ? nullptr : zeros_.data() + first; }

 private:
  std::vector<float> scales_;
  std::vector<int32_t> zeros_;
};

// g's A, C and end are set; this is its B.
Status multiply_integers(I8Gemm& g, const IntegerPanels& b);

// Rounds to nearest even, adds the zero point, saturates, stores as `to`'s dtype (int8 or uint8).
void store_quantized(Tensor& to, int64_t at, float value, int32_t zero_point);

}  // namespace py_ort
