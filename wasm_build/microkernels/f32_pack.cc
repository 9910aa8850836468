// Right operands of f32 products, in panels.
#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kColumns = F32Gemm::kColumns;

// One panel: columns [column, column + 8) of a matrix at `from`.
void pack_panel(const F32Pack& p, const float* from, int32_t column, float* out) {
  const v128_t factor = simd::splat(p.scale);
  const int32_t columns = p.n - column < kColumns ? p.n - column : kColumns;
  from += column * p.column_step;
  int32_t k = 0;
  if (p.column_step == 1) {
    for (; k < p.k; ++k, from += p.row_step, out += kColumns) {
      simd::store(out, simd::mul(load_some(from, columns), factor));
      simd::store(out + 4, columns > 4 ? simd::mul(load_some(from + 4, columns - 4), factor) : simd::splat(0));
    }
    return;
  }
  if (p.row_step == 1 && columns == kColumns) {  // 4x4 transposes
    for (; k + 4 <= p.k; k += 4, from += 4, out += 4 * kColumns) {
      for (int half = 0; half < 2; ++half) {
        const float* x = from + half * 4 * p.column_step;
        const v128_t r0 = simd::load(x), r1 = simd::load(x + p.column_step), r2 = simd::load(x + 2 * p.column_step),
                     r3 = simd::load(x + 3 * p.column_step);
        const v128_t low01 = wasm_i32x4_shuffle(r0, r1, 0, 4, 1, 5), high01 = wasm_i32x4_shuffle(r0, r1, 2, 6, 3, 7);
        const v128_t low23 = wasm_i32x4_shuffle(r2, r3, 0, 4, 1, 5), high23 = wasm_i32x4_shuffle(r2, r3, 2, 6, 3, 7);
        float* to = out + half * 4;
        simd::store(to, simd::mul(wasm_i64x2_shuffle(low01, low23, 0, 2), factor));
        simd::store(to + 8, simd::mul(wasm_i64x2_shuffle(low01, low23, 1, 3), factor));
        simd::store(to + 16, simd::mul(wasm_i64x2_shuffle(high01, high23, 0, 2), factor));
        simd::store(to + 24, simd::mul(wasm_i64x2_shuffle(high01, high23, 1, 3), factor));
      }
    }
  }
  for (; k < p.k; ++k, from += p.row_step, out += kColumns)
    for (int32_t c = 0; c < kColumns; ++c) out[c] = c < columns ? from[c * p.column_step] * p.scale : 0.0f;
}

}  // namespace

PY_ORT_MICROKERNEL(f32_pack_8)(const void* arguments, void*, int32_t begin, int32_t end) {
  const F32Pack& p = *static_cast<const F32Pack*>(arguments);
  const int32_t each = p.panels_each();
  for (int32_t unit = begin; unit < end; ++unit) {
    const int32_t matrix = p.first + unit / each;
    pack_panel(p, p.b + matrix / p.inner * p.outer_step + matrix % p.inner * p.inner_step, unit % each * kColumns,
               p.panels + static_cast<size_t>(unit) * p.k * kColumns);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
