// numpy's broadcasting of one to four operands, collapsed to the fewest loops.
#pragma once

#include <array>
#include <initializer_list>

#include "py_ort/tensor.h"

namespace py_ort {

class Broadcast {
 public:
  static constexpr size_t kMost = 4;
  using Offsets = std::array<int64_t, kMost>;

  static Status make(std::initializer_list<const Dims*> operands, Broadcast& out);

  Dims dims;          // of the result
  int64_t inner = 1;  // length of the innermost loop
  Offsets steps{};    // of the operands in it: 1, or 0 to repeat one element
  // Calls f(offsets, at) for each innermost loop: the operands' offsets and the result's.
  template <class F>
  void for_each_row(F f) const {
    if (element_count(dims) == 0) return;
    Offsets offsets{};
    Dims index(outer_.size());
    const int64_t rows = element_count(outer_);
    for (int64_t row = 0; row < rows; ++row) {
      f(offsets, row * inner);
      for (size_t d = outer_.size(); d-- > 0;) {
        for (size_t k = 0; k < kMost; ++k) offsets[k] += strides_[d][k];
        if (++index[d] < outer_[d]) break;
        for (size_t k = 0; k < kMost; ++k) offsets[k] -= strides_[d][k] * outer_[d];
        index[d] = 0;
      }
    }
  }

  // The same for innermost loops inside one loop: f(offsets, at, number of loops, strides of the operands).
  template <class F>
  void for_each_block(F f) const {
    Broadcast outer = *this;
    if (outer_.empty()) return for_each_row([&](const Offsets& offsets, int64_t at) { f(offsets, at, 1, Offsets{}); });
    const int64_t rows = outer_.back();
    outer.outer_.pop_back(), outer.strides_.pop_back();
    outer.for_each_row([&](const Offsets& offsets, int64_t at) { f(offsets, at * rows, rows, strides_.back()); });
  }

 private:
  Dims outer_;
  std::vector<Offsets> strides_;  // per outer loop
};

// The shape that two shapes broadcast to.
Status broadcast_dims(const Dims& a, const Dims& b, Dims& out);

}  // namespace py_ort
