// Discrete Fourier transforms of any length.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "py_ort/tensor.h"

namespace py_ort {

// Tensors of float or double, read and written as double.
inline double number_at(const Tensor& t, int64_t i) {
  return t.dtype == DType::float64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
}
inline void put_number(Tensor& t, int64_t i, double value) {
  if (t.dtype == DType::float64) t.mutable_data<double>()[i] = value;
  else t.mutable_data<float>()[i] = static_cast<float>(value);
}

struct Complex { double re = 0, im = 0; };
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex turn(double angle) { return {std::cos(angle), std::sin(angle)}; }

// A transform of one length: powers of two directly, others as a convolution of a power of two (Bluestein).
class Fft {
 public:
  explicit Fft(size_t n) : n_(n) {
    constexpr double pi = 3.14159265358979323846;
    if ((n & (n - 1)) == 0) {
      for (size_t i = 0; i < n / 2; ++i)
        roots_.push_back(turn(-2 * pi * static_cast<double>(i) / static_cast<double>(n)));
      return;
    }
    size_t wide = 1;
    while (wide < 2 * n - 1) wide *= 2;
    inner_.emplace_back(wide);
    for (size_t i = 0; i < n; ++i)
      chirp_.push_back(turn(-pi * static_cast<double>(i * i % (2 * n)) / static_cast<double>(n)));
    kernel_.resize(wide);
    for (size_t i = 0; i < n; ++i) kernel_[i] = kernel_[(wide - i) % wide] = {chirp_[i].re, -chirp_[i].im};
    inner_[0].forward(kernel_);
  }

  // In place, without scaling. data has as many elements as the transform.
  void forward(std::vector<Complex>& data) const {
    if (inner_.empty()) return powers_of_two(data);
    const size_t wide = kernel_.size();
    std::vector<Complex> work(wide);
    for (size_t i = 0; i < n_; ++i) work[i] = data[i] * chirp_[i];
    inner_[0].forward(work);
    for (size_t i = 0; i < wide; ++i) work[i] = work[i] * kernel_[i];
    inner_[0].inverse(work);
    for (size_t i = 0; i < n_; ++i) data[i] = work[i] * chirp_[i];
  }
  // Scaled by 1 / n.
  void inverse(std::vector<Complex>& data) const {
    for (Complex& x : data) x.im = -x.im;
    forward(data);
    const double scale = 1 / static_cast<double>(n_);
    for (Complex& x : data) x = {x.re * scale, -x.im * scale};
  }

 private:
  void powers_of_two(std::vector<Complex>& data) const {
    for (size_t i = 1, j = 0; i < n_; ++i) {
      size_t bit = n_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(data[i], data[j]);
    }
    for (size_t size = 2; size <= n_; size *= 2) {
      const size_t half = size / 2, step = n_ / size;
      for (size_t first = 0; first < n_; first += size)
        for (size_t k = 0; k < half; ++k) {
          const Complex odd = data[first + half + k] * roots_[k * step], even = data[first + k];
          data[first + k] = even + odd;
          data[first + half + k] = even - odd;
        }
    }
  }

  size_t n_;
  std::vector<Complex> roots_, chirp_, kernel_;
  std::vector<Fft> inner_;  // none, or one
};

}  // namespace py_ort
