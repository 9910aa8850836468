// f32 layer and root-mean-square normalization of rows, with an optional skip connection.
#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

using namespace simd;

// The sum of map(i, number of elements left) over the row; map returns zeros past its end.
template <class Map>
inline float sum_row(int32_t n, const Map& map) {
  v128_t sums[2] = {splat(0), splat(0)};
  int32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    sums[0] = add(sums[0], map(i, 4));
    sums[1] = add(sums[1], map(i + 4, 4));
  }
  for (; i < n; i += 4) sums[0] = add(sums[0], map(i, n - i));
  return sum_lanes(add(sums[0], sums[1]));
}

}  // namespace

PY_ORT_MICROKERNEL(f32_normalize_1x4)(const void* arguments, void*, int32_t begin, int32_t end) {
  const F32Normalize& f = *static_cast<const F32Normalize*>(arguments);
  const int32_t n = f.n;
  for (int32_t row = begin; row < end; ++row) {
    const size_t at = static_cast<size_t>(row) * n;
    const float* x = f.x + at;
    float* y = f.y + at;
    if (f.skip) {
      const float* skip = f.skip + static_cast<size_t>(row % f.skip_rows) * n;
      float* to = f.sum ? f.sum + at : y;
      for_vectors(0, n, [&](int32_t i, int32_t left) {
        v128_t v = add(load_some(x + i, left), load_some(skip + i, left));
        if (f.skip_bias) v = add(v, load_some(f.skip_bias + i, left));
        store_some(to + i, v, left);
      });
      x = to;
    }
    const float count = static_cast<float>(n);
    const auto sum_of = [&](float factor) {
      return sum_row(n, [&](int32_t i, int32_t left) { return mul(load_some(x + i, left), splat(factor)); });
    };
    float mean = f.centered ? sum_of(1.0f) / count : 0.0f;
    // The sums of the largest floats overflow, also to both infinities at once; their mean does not.
    if (!__builtin_isfinite(mean)) mean = sum_of(1.0f / count);
    const v128_t shift = splat(mean);
    // The sum of many floats far from zero is inexact, and so is the mean. The distances from the mean yield the
    // correction.
    v128_t distance = splat(0);
    const float squares = sum_row(n, [&](int32_t i, int32_t left) {
      const v128_t v = keep_some(sub(load_some(x + i, left), shift), left);
      distance = add(distance, v);
      return mul(v, v);
    });
    // Squares that overflow are infinite, and the whole row is 0 then.
    const float rest = f.centered && !__builtin_isinf(squares) ? sum_lanes(distance) / count : 0.0f;
    const float variance = __builtin_isinf(squares) ? squares : squares / count - rest * rest;
    const float inverse = 1.0f / __builtin_sqrtf((variance < 0 ? 0.0f : variance) + f.epsilon);
    const v128_t correction = splat(rest);
    const auto centered = [&](int32_t i, int32_t left) { return sub(sub(load_some(x + i, left), shift), correction); };
    if (f.mean)
      f.mean[row] = __builtin_isinf(mean) ? mean : mean + rest;  // (infinities have no distance from their mean)
    if (f.inverse_deviation) f.inverse_deviation[row] = inverse;

    const int32_t scale_row = row % f.scale_rows;
    if (f.scale_per_row) {
      const float scale = f.scale ? f.scale[scale_row] : 1.0f;
      const v128_t factor = splat(scale * inverse), bias = splat(f.bias ? f.bias[scale_row] : 0.0f);
      for_vectors(0, n,
                  [&](int32_t i, int32_t left) { store_some(y + i, add(mul(centered(i, left), factor), bias), left); });
    } else {
      const float* scale = f.scale ? f.scale + static_cast<size_t>(scale_row) * n : nullptr;
      const float* bias = f.bias ? f.bias + static_cast<size_t>(scale_row) * n : nullptr;
      const v128_t factor = splat(inverse);
      for_vectors(0, n, [&](int32_t i, int32_t left) {
        v128_t v = mul(centered(i, left), factor);
        if (scale) v = mul(v, load_some(scale + i, left));
        if (bias) v = add(v, load_some(bias + i, left));
        store_some(y + i, v, left);
      });
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
