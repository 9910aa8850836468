// f32 convolution of 3x3 taps by Winograd's F(2x2, 3x3), channels last.
#include "microkernels/activation.h"
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {

PY_ORT_MICROKERNEL(f32_gemm_6x8)(const void*, void*, int32_t, int32_t);

namespace {

using namespace simd;

struct Tile {
  int32_t batch, row, column;  // of the first output pixel
  Tile(const F32Winograd& f, int32_t index) {
    column = index % f.columns() * 2;
    row = index / f.columns() % f.rows() * 2;
    batch = index / f.columns() / f.rows();
  }
};

// The 4x4 pixels below a tile.
void locate(const F32Winograd& f, const Tile& tile, const float* (&pixels)[16]) {
  const Window& w = *f.window;
  for (int i = 0; i < 4; ++i) {
    const int32_t row = tile.row + i - w.pad[1];
    for (int j = 0; j < 4; ++j) {
      const int32_t column = tile.column + j - w.pad[2];
      const bool inside = row >= 0 && row < w.in[1] && column >= 0 && column < w.in[2];
      pixels[i * 4 + j] =
          inside ? f.x + static_cast<size_t>((tile.batch * w.in[1] + row) * w.in[2] + column) * w.pixel_stride
                 : f.zeros;
    }
  }
}

// One line of B^T d.
inline void transform_line(v128_t& a, v128_t& b, v128_t& c, v128_t& d) {
  const v128_t first = sub(a, c), second = add(b, c), third = sub(c, b), fourth = sub(b, d);
  a = first, b = second, c = third, d = fourth;
}

// B^T d B of every channel of a tile: to[plane][channel], planes `step` apart. Out of line, like f32_gemm.cc's tiles.
[[gnu::noinline]] void transform_input(const F32Winograd& f, const float* const (&pixels)[16], float* to, size_t step) {
  for (int32_t c = 0; c < f.k; c += 4) {
    const int32_t left = f.k - c;
    v128_t d[16];
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; ++i) d[i] = load_some(pixels[i] + c, left);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) transform_line(d[i], d[4 + i], d[8 + i], d[12 + i]);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) transform_line(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; ++i) store_some(to + i * step + c, d[i], left);
  }
}

// A^T m A of channels [begin, end) of a tile, plus bias and Z, activated, stored in the up to four pixels of the
// result.
[[gnu::noinline]] void transform_output(const F32Winograd& f, const Tile& tile, int32_t begin, int32_t end,
                                        const float* from, size_t step) {
  const Window& w = *f.window;
  const bool below = tile.row + 1 < w.out[1], beside = tile.column + 1 < w.out[2];
  const size_t first = static_cast<size_t>((tile.batch * w.out[1] + tile.row) * w.out[2] + tile.column);
  const size_t at[4] = {first, first + 1, first + w.out[2], first + w.out[2] + 1};
  const bool there[4] = {true, beside, below, below && beside};
  for (int32_t c = begin; c < end; c += 4, from += 4) {
    const int32_t left = end - c;
    v128_t lines[8];  // A^T m
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      const v128_t a = load_some(from + i * step, left), b = load_some(from + (4 + i) * step, left);
      const v128_t m = load_some(from + (8 + i) * step, left), d = load_some(from + (12 + i) * step, left);
      lines[i] = add(add(a, b), m);
      lines[4 + i] = sub(sub(b, m), d);
    }
    const v128_t bias = f.bias ? load_some(f.bias + c, left) : splat(0.0f);
    v128_t y[4];
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; ++i) {
      y[2 * i] = add(add(add(lines[4 * i], lines[4 * i + 1]), lines[4 * i + 2]), bias);
      y[2 * i + 1] = add(sub(sub(lines[4 * i + 1], lines[4 * i + 2]), lines[4 * i + 3]), bias);
    }
    if (f.z && !f.epilogue.residual_last) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i)
        if (there[i]) y[i] = add(y[i], load_some(f.z + at[i] * f.z_stride + c, left));
    }
    apply(f.epilogue, y);
    if (f.z && f.epilogue.residual_last) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i) {
        v128_t copy = y[i];
        if (there[i]) add_rows(&copy, f.z + at[i] * f.z_stride + c, 0, 1, 1, left);
        y[i] = copy;
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i)
      if (there[i]) store_some(f.y + at[i] * f.y_stride + c, y[i], left);
  }
}

}  // namespace

PY_ORT_MICROKERNEL(f32_winograd_2x2_3x3)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Winograd& f = *static_cast<const F32Winograd*>(arguments);
  const int32_t most = f.tiles_in_block(), blocks = f.blocks(), panels = (f.n + 7) / 8;
  float* in = reinterpret_cast<float*>(static_cast<char*>(scratch) + F32Gemm::kScratch);
  float* out = in + static_cast<size_t>(f.k) * most * 16;
  const size_t in_step = static_cast<size_t>(f.k) * most, plane = static_cast<size_t>(panels) * 8 * f.k;
  for (int32_t unit = begin; unit < end; ++unit) {
    const int32_t first = unit % blocks * most, left = f.tiles() - first, tiles = left < most ? left : most;
    const int32_t piece = unit / blocks, panel = panels * piece / f.column_pieces;
    const int32_t from = panel * 8, behind = panels * (piece + 1) / f.column_pieces * 8;
    const int32_t columns = (behind < f.n ? behind : f.n) - from;
    for (int32_t t = 0; t < tiles; ++t) {
      const float* pixels[16];
      locate(f, Tile(f, first + t), pixels);
      transform_input(f, pixels, in + static_cast<size_t>(t) * f.k, in_step);
    }
    F32Gemm g;
    g.rows = tiles, g.n = columns, g.k = f.k;
    g.a_stride = f.k, g.c_stride = columns;
    const size_t out_step = static_cast<size_t>(columns) * most;
    for (int i = 0; i < 16; ++i) {
      g.a = in + i * in_step, g.b = f.weights + i * plane + static_cast<size_t>(from) * f.k, g.c = out + i * out_step;
      PY_ORT_FOR_TARGET(f32_gemm_6x8)(&g, scratch, 0, g.units());
    }
    for (int32_t t = 0; t < tiles; ++t) {
      const float* made = out + static_cast<size_t>(t) * columns;
      transform_output(f, Tile(f, first + t), from, from + columns, made, out_step);
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
