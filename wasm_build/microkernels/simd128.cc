// The table for plain SIMD128, built into the core.
#include "py_ort/microkernels.h"

namespace py_ort {

#define PY_ORT_DECLARE(member, name) extern "C" void name##__simd128(const void*, void*, int32_t, int32_t);
PY_ORT_MICROKERNELS(PY_ORT_DECLARE)
#undef PY_ORT_DECLARE

#define PY_ORT_ENTRY(member, name) name##__simd128,
const Microkernels kSimd128Microkernels = {PY_ORT_MICROKERNELS(PY_ORT_ENTRY)};
#undef PY_ORT_ENTRY

}  // namespace py_ort
