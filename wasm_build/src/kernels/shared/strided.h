// Copies between tensors whose axes have different steps in memory: transposes, slices, tiles and everything built on
// them.
#pragma once

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>

#include "kernels/shared/elements.h"

namespace py_ort {

// Copies `count` contiguous elements. For few, a call of memcpy costs more than the copy.
template <class T>
inline void copy_run(const T* x, T* y, ptrdiff_t count) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::copy_n(x, count, y);
  } else {
    auto bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > 512) {
      std::memcpy(y, x, bytes);
      return;
    }
    const auto* from = reinterpret_cast<const char*>(x);
    auto* to = reinterpret_cast<char*>(y);
    for (; bytes >= 16; bytes -= 16, from += 16, to += 16) wasm_v128_store(to, wasm_v128_load(from));
    const auto* rest = reinterpret_cast<const T*>(from);
    auto* rest_to = reinterpret_cast<T*>(to);
    for (size_t i = 0; i < bytes / sizeof(T); ++i) rest_to[i] = rest[i];
  }
}

// Steps, in elements, of a tensor of these dims in C order.
Dims strides_of(const Dims& dims);

struct StridedView {
  int64_t offset = 0;
  Dims strides;  // may be negative, or 0 to repeat
};
// to[i, j, …] = from[i, j, …] for all indices below `dims`.
void strided_copy(const Tensor& from, StridedView from_view, Tensor& to, StridedView to_view, Dims dims);

// The offset in the input for each index of an output's axis, in elements (multiplied by the input's strides);
// negative: none.
using OffsetMap = std::vector<int64_t>;

// For each axis the map that keeps every index.
std::vector<OffsetMap> whole_axes(const Dims& dims);

// to[i, j, …] = from[sum of maps[axis][index]], in C order; a negative entry anywhere means `fill` (its element 0, or
// zero if null).
void mapped_copy(const Tensor& from, const std::vector<OffsetMap>& maps, const Tensor* fill, Tensor& to);

}  // namespace py_ort
