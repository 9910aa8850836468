// Products of 8-bit integers with zero points, and what quantized operators do with the sums.
#pragma once

#include <vector>

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// Element i of an int8 or uint8 tensor.
int32_t integer_at(const Tensor& tensor, int64_t i);

// The left operand, [rows, k], less its zero points. Rows are filled up to pairs.
struct IntegerRows {
  std::vector<int16_t> data;
  int32_t rows = 0, pairs = 0;
  void reset(int64_t row_count, int64_t k);
  int16_t* row(int64_t i) { return data.data() + i * 2 * pairs; }
};

// to[i] = tensor[first + i] - zero
void subtract_zero(const Tensor& tensor, int64_t first, int64_t count, int32_t zero, int16_t* to);

// The right operand, [k, n], less its zero points, in panels of 8 columns by pairs of rows.
struct IntegerPanels {
  std::vector<int16_t> data;
  int32_t n = 0, pairs = 0;
  // From row-major elements of `tensor`; zeros: one for each column.
  void fill(const Tensor& tensor, int64_t first, int64_t k, int64_t columns, const std::vector<int16_t>& zeros);
  // value(row, column) gives an element.
  template <class Value>
  void fill(int64_t k, int64_t columns, const Value& value) {
    n = static_cast<int32_t>(columns), pairs = static_cast<int32_t>((k + 1) / 2);
    data.assign(static_cast<size_t>((columns + 7) / 8 * 8 * 2 * pairs), 0);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < k; ++i)
        data[static_cast<size_t>((j / 8 * pairs + i / 2) * 16 + j % 8 * 2 + i % 2)] = static_cast<int16_t>(value(i, j));
  }
};

Status multiply_integers(const IntegerRows& a, const IntegerPanels& b, int32_t* c);

// The one number, or one number for each row or column, of a scale or zero point. A missing zero point is 0.
class PerAxis {
 public:
  static Status read(const Tensor* tensor, int64_t size, std::string_view what, PerAxis& out);
  float operator[](int64_t i) const { return values_[values_.size() == 1 ? 0 : static_cast<size_t>(i)]; }
  int32_t integer(int64_t i) const { return static_cast<int32_t>((*this)[i]); }

 private:
  std::vector<float> values_{0.0f};
};

// Rounds to nearest even, adds the zero point, saturates, stores as `to`'s dtype (int8 or uint8).
void store_quantized(Tensor& to, int64_t at, float value, int32_t zero_point);

}  // namespace py_ort
