// A point between four pixels of an image.
#pragma once

#include <cmath>
#include <cstdint>

namespace py_ort {

struct BilinearPoint {
  int64_t index[4] = {0, 0, 0, 0};
  float weight[4] = {0, 0, 0, 0};

  // Pixels outside of the image count as zero.
  static BilinearPoint with_zeros(float y, float x, int64_t height, int64_t width) {
    BilinearPoint p;
    if (!(y > -1 && x > -1 && y < static_cast<float>(height) && x < static_cast<float>(width))) return p;
    const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
    p.fill(top, left, top + 1, left + 1, y - static_cast<float>(top), x - static_cast<float>(left), width);
    for (int i = 0; i < 4; ++i) {
      const int64_t row = top + i / 2, column = left + i % 2;
      if (row < 0 || row >= height || column < 0 || column >= width) p.index[i] = 0, p.weight[i] = 0;
    }
    return p;
  }
  // Points up to one pixel outside are moved to the border; those farther away are zero.
  static BilinearPoint with_border(float y, float x, int64_t height, int64_t width) {
    BilinearPoint p;
    if (y < -1 || y > static_cast<float>(height) || x < -1 || x > static_cast<float>(width)) return p;
    const auto settle = [](float& at, int64_t size, int64_t& low, int64_t& high) {
      if (at < 0) at = 0;
      low = static_cast<int64_t>(at), high = low + 1;
      if (low < size - 1) return;
      low = high = size - 1;
      at = static_cast<float>(low);
    };
    int64_t top, bottom, left, right;
    settle(y, height, top, bottom);
    settle(x, width, left, right);
    p.fill(top, left, bottom, right, y - static_cast<float>(top), x - static_cast<float>(left), width);
    return p;
  }
  template <class T>
  T sample(const T* image) const {
    T sum = 0;
    for (int i = 0; i < 4; ++i) sum += image[index[i]] * static_cast<T>(weight[i]);
    return sum;
  }

 private:
  void fill(int64_t top, int64_t left, int64_t bottom, int64_t right, float y, float x, int64_t width) {
    const int64_t places[] = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    const float shares[] = {(1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x};
    for (int i = 0; i < 4; ++i) index[i] = places[i], weight[i] = shares[i];
  }
};

}  // namespace py_ort
