// f32 depthwise convolution, channels last: 4 output pixels by 8 channels at a time.
#include "microkernels/activation.h"
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kPixels = F32Depthwise::kPixels;

// V vectors of 4 channels from `channel` on, for P pixels. taps: [tap][4 pixels]. The last vector may exceed the
// channels. Such reads are harmless (the next bytes are the next pixel's, or padding of the buffer); stores are cut.
template <int P, int V>
inline void tile(const F32Depthwise& d, const float* const* taps, TapRange range, int32_t pixel, int32_t channel) {
  v128_t sums[P][V];
#pragma clang loop unroll(full)
  for (int v = 0; v < V; ++v) {
    const v128_t bias = d.bias ? load_some(d.bias + channel + v * 4, d.channels - channel - v * 4) : simd::splat(0.0f);
    for (int p = 0; p < P; ++p) sums[p][v] = bias;
  }
  const float* w = d.w + static_cast<size_t>(range.begin) * d.channels + channel;
  taps += range.begin * kPixels;
  for (int32_t tap = range.begin; tap < range.end; ++tap, w += d.channels, taps += kPixels) {
    v128_t weights[V];
    for (int v = 0; v < V; ++v) weights[v] = wasm_v128_load(w + v * 4);
#pragma clang loop unroll(full)
    for (int p = 0; p < P; ++p) {
      const float* x = taps[p] + channel;
      for (int v = 0; v < V; ++v) sums[p][v] = mul_add(wasm_v128_load(x + v * 4), weights[v], sums[p][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) {
    const float* z = d.z ? d.z + static_cast<size_t>(pixel + p) * d.z_stride + channel : nullptr;
    float* y = d.y + static_cast<size_t>(pixel + p) * d.y_stride + channel;
    if (z && !d.epilogue.residual_last)
      for (int v = 0; v < V; ++v)
        sums[p][v] = simd::add(sums[p][v], load_some(z + v * 4, d.channels - channel - v * 4));
    apply(d.epilogue, sums[p]);
    if (z && d.epilogue.residual_last) {
      v128_t copies[V];
      for (int v = 0; v < V; ++v) copies[v] = sums[p][v];
      add_rows(copies, z, 0, 1, V, d.channels - channel);
      for (int v = 0; v < V; ++v) sums[p][v] = copies[v];
    }
    for (int v = 0; v < V; ++v) store_some(y + v * 4, sums[p][v], d.channels - channel - v * 4);
  }
}

// Out of line, like the tiles of f32_gemm.cc.
template <int P>
[[gnu::noinline]] void pixels(const F32Depthwise& d, const float* const* taps, TapRange range, int32_t pixel) {
  int32_t channel = 0;
  for (; channel + 8 <= d.channels; channel += 8) tile<P, 2>(d, taps, range, pixel, channel);
  for (; channel < d.channels; channel += 4) tile<P, 1>(d, taps, range, pixel, channel);
}

}  // namespace

PY_ORT_MICROKERNEL(f32_depthwise_4x8)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Depthwise& d = *static_cast<const F32Depthwise*>(arguments);
  const Window& w = *d.window;
  const int32_t pixel_count = w.pixels_out();
  const float** taps = static_cast<const float**>(scratch);
  OutputPixel at(w, begin * kPixels);
  for (int32_t unit = begin; unit < end; ++unit) {
    const int32_t pixel = unit * kPixels;
    const int32_t count = kPixels < pixel_count - pixel ? kPixels : pixel_count - pixel;
    const TapRange range(w, at, count);
    locate_taps<kPixels>(w, at, count, d.x, d.zeros, taps);
    if (count == kPixels) {
      pixels<kPixels>(d, taps, range, pixel);
    } else {
      for (int32_t p = 0; p < count; ++p) pixels<1>(d, taps + p, range, pixel + p);
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
