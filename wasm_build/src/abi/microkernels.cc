// Which micro-kernels run: plain SIMD's, which are part of the core, or relaxed SIMD's, once the page has added them.
#include "py_ort/abi.h"
#include "py_ort/microkernels.h"

namespace {
py_ort::Microkernels relaxed = py_ort::kSimd128Microkernels;
}  // namespace

const char* ort_microkernel_names() {
#define PY_ORT_NAME(member, name) "\n" #name
  return PY_ORT_MICROKERNELS(PY_ORT_NAME) + 1;
#undef PY_ORT_NAME
}

void ort_microkernels_add(uint32_t first) {
#define PY_ORT_POINTER(member, name) relaxed.member = reinterpret_cast<py_ort::MicroKernel>(first++);
  PY_ORT_MICROKERNELS(PY_ORT_POINTER)
#undef PY_ORT_POINTER
}

void ort_microkernels_use(int use_relaxed) { use_microkernels(use_relaxed ? relaxed : py_ort::kSimd128Microkernels); }
