// A function of each float.
#include "microkernels/activation.h"

namespace py_ort::PY_ORT_TARGET {
PY_ORT_MICROKERNEL(f32_map_4)(const void* arguments, void*, int32_t begin, int32_t end) {
  const F32Map& m = *static_cast<const F32Map*>(arguments);
  for (int32_t unit = begin; unit < end; ++unit) {
    const float* x = m.x + static_cast<size_t>(unit) * F32Map::kBlock;
    float* y = m.y + static_cast<size_t>(unit) * F32Map::kBlock;
    const int32_t left = m.count - unit * F32Map::kBlock, count = left < F32Map::kBlock ? left : F32Map::kBlock;
    const int32_t whole = count / 4 * 4;
    activate_slowly(m.function, -0.0f, x, y, whole);
    if (whole < count) store_some(y + whole, activate(m.function, load_some(x + whole, count - whole)), count - whole);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
