// f32 matrix product and convolution: tiles of 6 rows by 8 columns, 12 accumulators, B in panels. Tiles of one row have
// 32 columns, of two rows 16: 8 accumulators.
#include "microkernels/activation.h"
#include "microkernels/window.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kRows = F32Gemm::kRows, kColumns = F32Gemm::kColumns;
constexpr int kPanelsOfOneRow = 4, kPanelsOfTwoRows = 2;
constexpr size_t kSomePanel = 1 << 12, kLargePanel = 1 << 16;

// Adds the product of R row pieces and k rows of P panels, `panel_step` apart. sums: [R][2 P] vectors.
template <int R, int P>
inline void accumulate(v128_t (&sums)[R * P * 2], const float* const* pieces, const float* b, size_t panel_step,
                       int32_t k) {
  const float* a[R];
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) a[r] = pieces[r];
  // One step at a time: in several, compilers put the additions to one sum in a row, and run out of registers.
#pragma clang loop unroll(disable)
  for (; k > 0; --k, b += kColumns) {
    v128_t w[2 * P];
#pragma clang loop unroll(full)
    for (int v = 0; v < 2 * P; ++v) w[v] = wasm_v128_load(b + v / 2 * panel_step + v % 2 * 4);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      const v128_t x = load_splat(a[r]++);
#pragma clang loop unroll(full)
      for (int v = 0; v < 2 * P; ++v) sums[r * 2 * P + v] = mul_add(x, w[v], sums[r * 2 * P + v]);
    }
  }
}

// pieces: [taps][6]. row, panel: the place in C. Out of line: browsers optimize a function as a whole, while its slow
// form runs, and small functions are ready early.
template <int R, int P = 1>
[[gnu::noinline]] void tile(const F32Gemm& g, const float* const* pieces, int32_t taps, int32_t k, int32_t row,
                            int32_t panel) {
  constexpr int kVectors = 2 * P;
  // Several panels are whole.
  const int32_t column = panel * kColumns, columns = P > 1 ? kVectors * 4 : g.n - column;
  const size_t panel_step = static_cast<size_t>(kColumns) * taps * k;
  const float* b = g.b + panel * panel_step;
  const auto within = [&](int v) { return v == 0 || columns > v * 4; };
  v128_t sums[R * kVectors];
#pragma clang loop unroll(full)
  for (int v = 0; v < kVectors; ++v) {
    const v128_t first = g.bias && within(v) ? load_some(g.bias + column + v * 4, columns - v * 4) : simd::splat(0.0f);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) sums[r * kVectors + v] = first;
  }
  for (int32_t tap = 0; tap < taps; ++tap, b += k * kColumns)
    accumulate<R, P>(sums, pieces + tap * kRows, b, panel_step, k);

  const float* z = g.z ? g.z + static_cast<size_t>(row) * g.z_stride + column : nullptr;
  if (z && !g.epilogue.residual_last) {
    const float* from = z;
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r, from += g.z_stride) {
#pragma clang loop unroll(full)
      for (int v = 0; v < kVectors; ++v)
        if (within(v))
          sums[r * kVectors + v] = simd::add(sums[r * kVectors + v], load_some(from + v * 4, columns - v * 4));
    }
  }
  apply(g.epilogue, sums);
  if (z && g.epilogue.residual_last) {
    v128_t copies[R * kVectors];
#pragma clang loop unroll(full)
    for (int i = 0; i < R * kVectors; ++i) copies[i] = sums[i];
    add_rows(copies, z, g.z_stride, R, kVectors, columns);
#pragma clang loop unroll(full)
    for (int i = 0; i < R * kVectors; ++i) sums[i] = copies[i];
  }
  float* c = g.c + static_cast<size_t>(row) * g.c_stride + column;
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r, c += g.c_stride) {
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v)
      if (within(v)) store_some(c + v * 4, sums[r * kVectors + v], columns - v * 4);
  }
}

// As few forms as possible: 5 rows are 4 and 1. (No table of functions: side modules have no data of their own.)
void tile_of(int32_t rows, const F32Gemm& g, const float* const* pieces, int32_t taps, int32_t k, int32_t row,
             int32_t panel) {
  if (rows >= kRows) return tile<kRows>(g, pieces, taps, k, row, panel);
  if (rows >= 4) tile<4>(g, pieces, taps, k, row, panel), rows -= 4, pieces += 4, row += 4;
  if (rows >= 2) tile<2>(g, pieces, taps, k, row, panel), rows -= 2, pieces += 2, row += 2;
  if (rows >= 1) tile<1>(g, pieces, taps, k, row, panel);
}

// The row pieces of a block of tiles, as pointers [tile][tap][6].
class Block {
 public:
  // `most`: the most tiles of the block.
  Block(const F32Gemm& g, void* scratch, int32_t most) : g_(g), pieces_(static_cast<const float**>(scratch)) {
    taps_ = g.packs_rows() ? 1 : g.taps;
    k_ = g.packs_rows() ? g.k * g.taps : g.k;
    packed_ = reinterpret_cast<float*>(pieces_ + static_cast<size_t>(taps_) * kRows * most);
  }

  void fill(int32_t row, int32_t tiles) {
    const int32_t rows = tiles * kRows < g_.rows - row ? tiles * kRows : g_.rows - row;
    if (!g_.window) {
      for (int32_t r = 0; r < rows; ++r) pieces_[r] = g_.a + static_cast<size_t>(row + r) * g_.a_stride;
      return;
    }
    OutputPixel pixel(*g_.window, row);
    for (int32_t r = 0; r < rows; ++r, pixel.next(*g_.window)) {
      if (g_.packs_rows()) {
        float* to = packed_ + static_cast<size_t>(r) * k_;
        pieces_[r] = to;
        gather(pixel, to);
      } else {
        const float** to = pieces_ + r / kRows * kRows * taps_ + r % kRows;
        for_taps(*g_.window, pixel, g_.a,
                 [&](int32_t tap, const float* from) { to[tap * kRows] = from ? from : g_.zeros; });
      }
    }
  }

  // With one or two rows, several panels at a time: within one panel a row's additions would wait for each other.
  int32_t panels_at_once(int32_t row) const {
    const int32_t rows = g_.rows - row;
    return rows == 1 ? kPanelsOfOneRow : rows == 2 ? kPanelsOfTwoRows : 1;
  }
  void multiply_panels(int32_t row, int32_t panel) const {
    if (g_.rows - row == 1) return tile<1, kPanelsOfOneRow>(g_, pieces_, taps_, k_, row, panel);
    tile<2, kPanelsOfTwoRows>(g_, pieces_, taps_, k_, row, panel);
  }

  void multiply(int32_t row, int32_t tile, int32_t panel) const {
    const int32_t first = row + tile * kRows;
    const int32_t rows = kRows < g_.rows - first ? kRows : g_.rows - first;
    tile_of(rows, g_, pieces_ + static_cast<size_t>(tile) * kRows * taps_, taps_, k_, first, panel);
  }

  // Prefetches a part of a panel. With small panels the processor does as well by itself, and with one tile at a time
  // for all but the largest.
  void fetch(int32_t panel, int32_t part, int32_t parts) const {
    const size_t step = static_cast<size_t>(kColumns) * taps_ * k_, bytes = sizeof(float) * step;
    if (bytes >= (parts > 1 ? kSomePanel : kLargePanel)) fetch_lines(g_.b + panel * step, bytes, part, parts);
  }

 private:
  // One row of A, its pieces one after the other.
  void gather(const OutputPixel& pixel, float* to) const {
    const Window& w = *g_.window;
    const int32_t first = pixel.at[2] * w.stride[2] - w.pad[2];
    // If no column of the window leaves the image, the pieces of a window row are contiguous.
    if (w.pixel_stride == g_.k && w.dilation[2] == 1 && first >= 0 && first + w.kernel[2] <= w.in[2]) {
      const int32_t run = w.kernel[2] * g_.k;
      for_window_rows(w, pixel, g_.a, [&](const float* row) {
        // Four at a time: data written past the run is overwritten later, or is padding of the scratch space.
        for (int32_t i = 0; i < run; i += 4)
          wasm_v128_store(to + i, row ? wasm_v128_load(row + first * g_.k + i) : simd::splat(0.0f));
        to += run;
      });
    } else {
      for_taps(w, pixel, g_.a, [&](int32_t, const float* from) {
        for (int32_t i = 0; i < g_.k; ++i) to[i] = from ? from[i] : 0.0f;
        to += g_.k;
      });
    }
  }

  const F32Gemm& g_;
  const float** pieces_;
  float* packed_;
  int32_t taps_, k_;
};

}  // namespace

PY_ORT_MICROKERNEL(f32_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Gemm& g = *static_cast<const F32Gemm*>(arguments);
  const int32_t tiles = g.tiles(), most = g.block(), panels = (g.n + kColumns - 1) / kColumns;
  Block block(g, scratch, most);
  for (int32_t unit = begin; unit < end;) {
    const int32_t piece = unit / tiles, first = unit % tiles;
    int32_t count = most;
    if (count > tiles - first) count = tiles - first;
    if (count > end - unit) count = end - unit;
    block.fill(first * kRows, count);
    // A panel stays in the first-level cache, unless k is large, while it is multiplied with the tiles of the block,
    // which fit in the second. The next panel is fetched meanwhile.
    const int32_t last_panel = panels * (piece + 1) / g.column_pieces;
    int32_t panel = panels * piece / g.column_pieces;
    if (const int32_t step = block.panels_at_once(first * kRows); step > 1)
      for (; panel + step <= last_panel && (panel + step) * kColumns <= g.n; panel += step)
        block.multiply_panels(first * kRows, panel);
    for (; panel < last_panel; ++panel)
      for (int32_t tile = 0; tile < count; ++tile) {
        block.multiply(first * kRows, tile, panel);
        if (panel + 1 < last_panel) block.fetch(panel + 1, tile, count);
      }
    unit += count;
  }
}

}  // namespace py_ort::PY_ORT_TARGET
