// f32 max and average pooling, channels last.
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
PY_ORT_MICROKERNEL(f32_pool_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Pool& p = *static_cast<const F32Pool*>(arguments);
  const Window& w = *p.window;
  const float** taps = static_cast<const float**>(scratch);
  const int32_t columns = w.kernel[2], all = w.taps();
  OutputPixel at(w, begin);
  for (int32_t unit = begin; unit < end; ++unit, at.next(w)) {
    int32_t count = 0;
    float* y = p.y + static_cast<size_t>(unit) * p.channels;
    if (p.kind == F32Pool::maximum) {
      for_taps(w, at, p.x, [&](int32_t, const float* from) {
        if (from) taps[count++] = from;
      });
      for (int32_t channel = 0; channel < p.channels; channel += 4) {
        v128_t best = simd::splat(-__builtin_inff());
        for (int32_t t = 0; t < count; ++t) best = wasm_f32x4_pmax(best, wasm_v128_load(taps[t] + channel));
        store_some(y + channel, best, p.channels - channel);
      }
      continue;
    }
    for_taps(w, at, p.x, [&](int32_t tap, const float* from) {
      taps[tap] = from;
      count += from != nullptr;
    });
    const int32_t divisor = p.count_padding ? padded_taps(w, at, p.pad_end) : count;
    const v128_t divisors = simd::splat(divisor ? static_cast<float>(divisor) : 1.0f);
    for (int32_t channel = 0; channel < p.channels; channel += 4) {
      // Of columns first, as onnxruntime adds: a mean of quantized numbers is often just between two steps.
      v128_t sum = simd::splat(0.0f);
      for (int32_t column = 0; column < columns; ++column) {
        v128_t part = simd::splat(0.0f);
        for (int32_t t = column; t < all; t += columns)
          if (taps[t]) part = simd::add(part, wasm_v128_load(taps[t] + channel));
        sum = simd::add(sum, part);
      }
      store_some(y + channel, wasm_f32x4_div(sum, divisors), p.channels - channel);
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
