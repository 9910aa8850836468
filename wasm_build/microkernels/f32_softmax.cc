// f32 softmax and log-softmax.
#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

using namespace simd;

// The sum, lane by lane, of e^(x - shift). Each exponent is stored in y, unless y is null. Out of line, so that it has
// all registers.
[[gnu::noinline]] v128_t exponents(const float* x, int32_t n, v128_t shift, float* y) {
  v128_t sums = splat(0);
  for_vectors(0, n, [&](int32_t i, int32_t left) {
    const v128_t e = keep_some(exp_of_negative(sub(load_some(x + i, left), shift)), left);
    sums = add(sums, e);
    if (y) store_some(y + i, e, left);
  });
  return sums;
}

// Along contiguous elements.
void softmax_row(const float* x, float* y, int32_t n, bool log_of_it) {
  v128_t best = splat(-__builtin_inff());
  int32_t i = 0;
  for (; i + 4 <= n; i += 4) best = wasm_f32x4_pmax(best, load(x + i));
  float max = max_lanes(best);
  for (; i < n; ++i) max = x[i] > max ? x[i] : max;

  const v128_t shift = splat(max), sum = splat(sum_lanes(exponents(x, n, shift, log_of_it ? nullptr : y)));
  if (log_of_it) {
    const v128_t total = log(sum);
    for_vectors(0, n, [&](int32_t at, int32_t left) {
      store_some(y + at, sub(sub(load_some(x + at, left), shift), total), left);
    });
  } else {
    const v128_t factor = div(splat(1.0f), sum);
    for_vectors(0, n,
                [&](int32_t at, int32_t left) { store_some(y + at, mul(load_some(y + at, left), factor), left); });
  }
}

// Along elements `inner` apart: all columns side by side.
void softmax_columns(const float* x, float* y, int32_t n, int32_t inner, bool log_of_it, float* scratch) {
  float *max = scratch, *sum = scratch + (inner + 3) / 4 * 4;
  for (int32_t i = 0; i < inner; i += 4) store(max + i, splat(-__builtin_inff())), store(sum + i, splat(0));
  const auto for_all = [&](const auto& visit) {
    for (int32_t row = 0; row < n; ++row)
      for_vectors(0, inner, [&](int32_t i, int32_t left) { visit(static_cast<size_t>(row) * inner + i, i, left); });
  };
  for_all([&](size_t at, int32_t i, int32_t left) {
    store(max + i, wasm_f32x4_pmax(load(max + i), load_some(x + at, left)));
  });
  for_all([&](size_t at, int32_t i, int32_t left) {
    const v128_t e = exp_of_negative(sub(load_some(x + at, left), load(max + i)));
    store(sum + i, add(load(sum + i), e));
    if (!log_of_it) store_some(y + at, e, left);
  });
  for (int32_t i = 0; i < inner; i += 4)
    store(sum + i, log_of_it ? log(load(sum + i)) : div(splat(1.0f), load(sum + i)));
  for_all([&](size_t at, int32_t i, int32_t left) {
    if (log_of_it) store_some(y + at, sub(sub(load_some(x + at, left), load(max + i)), load(sum + i)), left);
    else store_some(y + at, mul(load_some(y + at, left), load(sum + i)), left);
  });
}

}  // namespace

PY_ORT_MICROKERNEL(f32_softmax_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Softmax& s = *static_cast<const F32Softmax*>(arguments);
  const size_t step = static_cast<size_t>(s.n) * s.inner;
  for (int32_t unit = begin; unit < end; ++unit) {
    const float* x = s.x + unit * step;
    float* y = s.y + unit * step;
    if (s.inner == 1) softmax_row(x, y, s.n, s.log);
    else softmax_columns(x, y, s.n, s.inner, s.log, static_cast<float*>(scratch));
  }
}

}  // namespace py_ort::PY_ORT_TARGET
