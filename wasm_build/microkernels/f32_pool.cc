// f32 max and average pooling, channels last.
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

// V vectors of 4 channels from `channel` on; the last one may exceed the channels, as in f32_depthwise.cc.
template <int V>
inline void pool(const F32Pool& p, const float* const* taps, int32_t count, v128_t scale, float* y, int32_t channel) {
  const bool maximum = p.kind == F32Pool::maximum;
  v128_t made[V];
  const auto reduce = [&](const auto& with) {
    for (int32_t t = 0; t < count; ++t) {
      const float* x = taps[t] + channel;
#pragma clang loop unroll(full)
      for (int v = 0; v < V; ++v) made[v] = with(made[v], wasm_v128_load(x + 4 * v));
    }
  };
#pragma clang loop unroll(full)
  for (int v = 0; v < V; ++v) made[v] = simd::splat(maximum ? -__builtin_inff() : 0.0f);
  if (maximum) reduce([](v128_t a, v128_t b) { return wasm_f32x4_pmax(a, b); });
  else reduce([](v128_t a, v128_t b) { return simd::add(a, b); });
#pragma clang loop unroll(full)
  for (int v = 0; v < V; ++v) {
    const v128_t result = maximum ? made[v] : simd::mul(made[v], scale);
    store_some(y + channel + 4 * v, result, p.channels - channel - 4 * v);
  }
}

}  // namespace

PY_ORT_MICROKERNEL(f32_pool_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Pool& p = *static_cast<const F32Pool*>(arguments);
  const Window& w = *p.window;
  const float** taps = static_cast<const float**>(scratch);
  OutputPixel at(w, begin);
  for (int32_t unit = begin; unit < end; ++unit, at.next(w)) {
    int32_t count = 0;
    for_taps_inside(w, at, p.x, [&](const float* from) { taps[count++] = from; });
    float* y = p.y + static_cast<size_t>(unit) * p.channels;
    const auto divisor = static_cast<float>(p.count_padding ? padded_taps(w, at, p.pad_end) : count);
    const v128_t scale = simd::splat(divisor > 0 ? 1.0f / divisor : 0.0f);
    int32_t channel = 0;
    for (; channel + 16 <= p.channels; channel += 16) pool<4>(p, taps, count, scale, y, channel);
    for (; channel < p.channels; channel += 4) pool<1>(p, taps, count, scale, y, channel);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
