// Integer matrix product: 16-bit factors in pairs, 32-bit sums; tiles of 4 rows by 8 columns.
#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kRows = I16Gemm::kRows, kColumns = I16Gemm::kColumns;

template <int R>
void tile(const I16Gemm& g, int32_t row, int32_t panel) {
  v128_t left[R], right[R];
  const int16_t* a[R];
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) {
    left[r] = right[r] = wasm_i32x4_splat(0);
    a[r] = g.a + static_cast<size_t>(row + r) * g.pairs * 2;
  }
  const int16_t* b = g.b + static_cast<size_t>(panel) * g.pairs * kColumns * 2;
  for (int32_t k = 0; k < g.pairs; ++k, b += kColumns * 2) {
    const v128_t x = wasm_v128_load(b), y = wasm_v128_load(b + 8);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      const v128_t pair = wasm_v128_load32_splat(a[r] + 2 * k);
      left[r] = wasm_i32x4_add(left[r], wasm_i32x4_dot_i16x8(pair, x));
      right[r] = wasm_i32x4_add(right[r], wasm_i32x4_dot_i16x8(pair, y));
    }
  }
  const int32_t column = panel * kColumns, columns = g.n - column < kColumns ? g.n - column : kColumns;
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) {
    int32_t* c = g.c + static_cast<size_t>(row + r) * g.n + column;
    if (columns == kColumns) {
      wasm_v128_store(c, left[r]);
      wasm_v128_store(c + 4, right[r]);
    } else {
      alignas(16) int32_t lanes[kColumns];
      wasm_v128_store(lanes, left[r]);
      wasm_v128_store(lanes + 4, right[r]);
      for (int32_t i = 0; i < columns; ++i) c[i] = lanes[i];
    }
  }
}

}  // namespace

PY_ORT_MICROKERNEL(i16_gemm_4x8)(const void* arguments, void*, int32_t begin, int32_t end) {
  const I16Gemm& g = *static_cast<const I16Gemm*>(arguments);
  const int32_t panels = (g.n + kColumns - 1) / kColumns;
  for (int32_t panel = 0; panel < panels; ++panel) {
    for (int32_t unit = begin; unit < end; ++unit) {
      const int32_t row = unit * kRows;
      switch (g.rows - row) {
        case 1: tile<1>(g, row, panel); break;
        case 2: tile<2>(g, row, panel); break;
        case 3: tile<3>(g, row, panel); break;
        default: tile<4>(g, row, panel); break;
      }
    }
  }
}

}  // namespace py_ort::PY_ORT_TARGET
