// Depthwise convolution of 8-bit integers, channels last: 4 output pixels by 8 channels, two taps at a time.
#include "microkernels/i8_end.h"
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kPixels = I8Depthwise::kPixels;

// taps: [tap][4 pixels], an even number of them. Reads may exceed the channels, stores do not.
template <int P>
inline void tile(const I8Depthwise& d, const uint8_t* const* taps, int32_t pairs, int32_t pixel, int32_t channel) {
  v128_t left[P], right[P];
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) {
    left[p] = first_sums(d, d.w_sums, d.x_zero, channel);
    right[p] = channel + 4 < d.n ? first_sums(d, d.w_sums, d.x_zero, channel + 4) : left[p];
  }
  const v128_t flip = wasm_i8x16_splat(static_cast<int8_t>(d.flip));
  const auto eight = [&](const uint8_t* from) {
    return wasm_u16x8_extend_low_u8x16(wasm_v128_xor(wasm_v128_load64_zero(from + channel), flip));
  };
  const int16_t* w = d.w + channel * 2;
  for (int32_t pair = 0; pair < pairs; ++pair, w += (d.n + 7) / 8 * 16, taps += 2 * kPixels) {
    const v128_t low = wasm_v128_load(w), high = wasm_v128_load(w + 8);
#pragma clang loop unroll(full)
    for (int p = 0; p < P; ++p) {
      const v128_t x = eight(taps[p]), y = eight(taps[kPixels + p]);
      left[p] = wasm_i32x4_add(left[p], wasm_i32x4_dot_i16x8(wasm_i16x8_shuffle(x, y, 0, 8, 1, 9, 2, 10, 3, 11), low));
      right[p] =
          wasm_i32x4_add(right[p], wasm_i32x4_dot_i16x8(wasm_i16x8_shuffle(x, y, 4, 12, 5, 13, 6, 14, 7, 15), high));
    }
  }
  v128_t values[P];  // only these have an address
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) values[p] = left[p];
  finish(d, values, P, pixel, channel);
  if (channel + 4 >= d.n) return;
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) values[p] = right[p];
  finish(d, values, P, pixel, channel + 4);
}

template <int P>
void pixels(const I8Depthwise& d, const uint8_t* const* taps, int32_t pairs, int32_t pixel) {
  for (int32_t channel = 0; channel < d.n; channel += 8) tile<P>(d, taps, pairs, pixel, channel);
}

}  // namespace

PY_ORT_MICROKERNEL(i8_depthwise_4x8)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const I8Depthwise& d = *static_cast<const I8Depthwise*>(arguments);
  const Window& w = *d.window;
  const int32_t pixel_count = w.pixels_out(), tap_count = w.taps(), pairs = (tap_count + 1) / 2;
  const uint8_t** taps = static_cast<const uint8_t**>(scratch);
  for (int32_t p = 0; p < kPixels; ++p) taps[tap_count * kPixels + p] = d.zeros;  // its weights are zero
  OutputPixel at(w, begin * kPixels);
  for (int32_t unit = begin; unit < end; ++unit) {
    const int32_t pixel = unit * kPixels;
    const int32_t count = kPixels < pixel_count - pixel ? kPixels : pixel_count - pixel;
    locate_taps<kPixels>(w, at, count, d.x, d.zeros, taps);
    if (count == kPixels) pixels<kPixels>(d, taps, pairs, pixel);
    else
      for (int32_t p = 0; p < count; ++p) pixels<1>(d, taps + p, pairs, pixel + p);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
