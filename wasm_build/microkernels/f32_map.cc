// A function of each float.
#include "microkernels/activation.h"

namespace py_ort::PY_ORT_TARGET {
namespace {

PY_ORT_OTHER_FUNCTIONS(PY_ORT_EACH)

void map(const Activation& function, const float* x, float* y, int32_t count) {
  switch (function.kind) {
#define PY_ORT_CASE(kind, ...) \
  case Activation::kind: return kind##_each(function, -0.0f, x, y, count);
    PY_ORT_OTHER_FUNCTIONS(PY_ORT_CASE)
#undef PY_ORT_CASE
    default: return activate_slowly(function, -0.0f, x, y, count);
  }
}

}  // namespace

PY_ORT_MICROKERNEL(f32_map_4)(const void* arguments, void*, int32_t begin, int32_t end) {
  const F32Map& m = *static_cast<const F32Map*>(arguments);
  for (int32_t unit = begin; unit < end; ++unit) {
    const float* x = m.x + static_cast<size_t>(unit) * F32Map::kBlock;
    float* y = m.y + static_cast<size_t>(unit) * F32Map::kBlock;
    const int32_t left = m.count - unit * F32Map::kBlock, count = left < F32Map::kBlock ? left : F32Map::kBlock;
    const int32_t whole = count / 4 * 4;
    map(m.function, x, y, whole);
    if (whole == count) continue;
    v128_t last = load_some(x + whole, count - whole);
    map(m.function, reinterpret_cast<const float*>(&last), reinterpret_cast<float*>(&last), 4);
    store_some(y + whole, last, count - whole);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
