// Tables, sums and products of bytes. A result halfway between two steps is rounded as in onnxruntime: its zero point
// is added before it is rounded, and sums and products are made in the same order.
#include "kernels/quantization/byte_lanes.h"
#include "microkernels/target.h"
#include "py_ort/integer_products.h"

namespace py_ort {
namespace PY_ORT_TARGET {
namespace {

// A row of bytes, or one byte repeated.
struct Row {
  const uint8_t* data;
  int32_t step;  // 1 or 0
  v128_t load(int64_t i) const { return step ? wasm_v128_load(data + i) : wasm_v128_load8_splat(data); }
  // Loads the rest of a row, count < 16.
  v128_t load(int64_t i, int64_t count) const {
    if (!step) return wasm_v128_load8_splat(data);
    uint8_t bytes[16] = {};
    for (int64_t k = 0; k < count; ++k) bytes[k] = data[i + k];
    return wasm_v128_load(bytes);
  }
};

// value(four numbers of p, four of q): four numbers of the result, not yet rounded.
template <bool kSigned, class Value>
void combine(Row p, Row q, int64_t count, uint8_t* to, const Value& value) {
  const auto sixteen = [&](v128_t left, v128_t right) {
    v128_t a[4], b[4];
    widen<kSigned>(left, a), widen<kSigned>(right, b);
    for (int i = 0; i < 4; ++i) a[i] = value(a[i], b[i]);
    return narrow<kSigned>(a);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) wasm_v128_store(to + i, sixteen(p.load(i), q.load(i)));
  if (i == count) return;
  uint8_t last[16];
  wasm_v128_store(last, sixteen(p.load(i, count - i), q.load(i, count - i)));
  for (int64_t k = 0; i + k < count; ++k) to[i + k] = last[k];
}

template <bool kSigned>
void combine(const I8Map& m, Row p, Row q, int64_t count, uint8_t* to) {
  if (m.kind == I8Map::sum) {
    const v128_t left = simd::splat(m.a_scale), right = simd::splat(m.b_scale), fixed = simd::splat(m.fixed);
    combine<kSigned>(p, q, count, to, [&](v128_t x, v128_t z) {
      return simd::add(simd::add(fixed, simd::mul(x, left)), simd::mul(z, right));
    });
  } else {
    const v128_t a_zero = simd::splat(m.a_zero), b_zero = simd::splat(m.b_zero);
    const v128_t scale = simd::splat(m.scale), zero = simd::splat(m.y_zero);
    combine<kSigned>(p, q, count, to, [&](v128_t x, v128_t z) {
      return simd::add(simd::mul(simd::mul(simd::sub(x, a_zero), simd::sub(z, b_zero)), scale), zero);
    });
  }
}

}  // namespace
}  // namespace PY_ORT_TARGET

PY_ORT_MICROKERNEL(i8_map_16)(const void* arguments, void*, int32_t begin, int32_t end) {
  using namespace PY_ORT_TARGET;
  const I8Map& m = *static_cast<const I8Map*>(arguments);
  for (int32_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / m.blocks(), first = unit % m.blocks() * I8Map::kBlock;
    const int64_t count = m.n - first < I8Map::kBlock ? m.n - first : I8Map::kBlock;
    const Row p{m.a + row * m.a_row + first * m.a_step, m.a_step};
    uint8_t* to = m.y + row * m.n + first;
    if (m.kind == I8Map::look_up) {
      for (int64_t i = 0; i < count; ++i) to[i] = m.b[p.data[i]];
      continue;
    }
    const Row q{m.b + row * m.b_row + first * m.b_step, m.b_step};
    if (m.is_signed) combine<true>(m, p, q, count, to);
    else combine<false>(m, p, q, count, to);
  }
}

}  // namespace py_ort
