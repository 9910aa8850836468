// f32 max and average pooling, channels last.
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
PY_ORT_MICROKERNEL(f32_pool_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Pool& p = *static_cast<const F32Pool*>(arguments);
  const Window& w = *p.window;
  const float** taps = static_cast<const float**>(scratch);
  OutputPixel at(w, begin);
  for (int32_t unit = begin; unit < end; ++unit, at.next(w)) {
    int32_t count = 0;
    for_taps(w, at, p.x, [&](int32_t, const float* from) {
      if (from) taps[count++] = from;
    });
    float* y = p.y + static_cast<size_t>(unit) * p.channels;
    const int32_t divisor = p.count_padding ? padded_taps(w, at, p.pad_end) : count;
    const v128_t scale = simd::splat(divisor ? 1.0f / static_cast<float>(divisor) : 0.0f);
    for (int32_t channel = 0; channel < p.channels; channel += 4) {
      v128_t best = simd::splat(p.kind == F32Pool::maximum ? -__builtin_inff() : 0.0f);
      if (p.kind == F32Pool::maximum) {
        for (int32_t t = 0; t < count; ++t) best = wasm_f32x4_pmax(best, wasm_v128_load(taps[t] + channel));
      } else {
        for (int32_t t = 0; t < count; ++t) best = simd::add(best, wasm_v128_load(taps[t] + channel));
        best = simd::mul(best, scale);
      }
      store_some(y + channel, best, p.channels - channel);
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
