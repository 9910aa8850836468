#include "kernels/convolution/winograd.h"

#include "kernels/shared/simd_math.h"

namespace py_ort {

bool winograd_pays(const SpatialPlan& plan, int64_t in_channels, int64_t out_channels) {
  const Window& w = plan.window;
  for (int axis = 0; axis < 3; ++axis) {
    const int32_t kernel = axis == 0 ? 1 : 3;
    if (w.kernel[axis] != kernel || w.stride[axis] != 1 || w.dilation[axis] != 1) return false;
  }
  if (w.in[0] != 1 || w.pad[0] != 0) return false;
  const int64_t tiles = int64_t{w.batch} * ((w.out[1] + 1) / 2) * ((w.out[2] + 1) / 2);
  return in_channels >= 16 && out_channels >= 16 && tiles >= 40;
}

Status winograd_weights(const float* panels, int64_t k, int64_t n, Tensor& out) {
  const int64_t columns = (n + 7) / 8;
  PY_ORT_TRY(Tensor::make(DType::float32, {16, columns, k, 8}, out));
  const v128_t half = simd::splat(0.5f);
  // One line of G g: three taps become four.
  const auto line = [&](const v128_t* g, size_t step, v128_t* to, size_t to_step) {
    const v128_t ends = simd::add(g[0], g[2 * step]);
    to[0] = g[0];
    to[to_step] = simd::mul(simd::add(ends, g[step]), half);
    to[2 * to_step] = simd::mul(simd::sub(ends, g[step]), half);
    to[3 * to_step] = g[2 * step];
  };
  for (int64_t panel = 0; panel < columns; ++panel) {
    for (int64_t channel = 0; channel < k; ++channel) {
      for (int64_t part = 0; part < 8; part += 4) {
        v128_t taps[9], rows[12], made[16];
        for (int64_t tap = 0; tap < 9; ++tap)
          taps[tap] = simd::load(panels + ((panel * 9 + tap) * k + channel) * 8 + part);
        for (size_t i = 0; i < 3; ++i) line(taps + i, 3, rows + i, 3);
        for (size_t i = 0; i < 4; ++i) line(rows + 3 * i, 1, made + 4 * i, 1);
        for (int64_t i = 0; i < 16; ++i)
          simd::store(out.mutable_data<float>() + ((i * columns + panel) * k + channel) * 8 + part, made[i]);
      }
    }
  }
  return {};
}

}  // namespace py_ort
