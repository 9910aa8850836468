// The micro-kernels in use: plain SIMD's or relaxed SIMD's, once the page has added them.
#include <emscripten.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "py_ort/abi.h"
#include "py_ort/microkernels.h"
#include "py_ort/tensor.h"

extern "C" {
EM_JS(int, microkernel_share, (int kernel, uint32_t address, const void* args, size_t scratch_bytes, int32_t units,
                               int wake), {
  const run = wasmTable.get(address);
  return Module['shareMicrokernel'](kernel, run, args, scratch_bytes >>> 0, units, wake !== 0);
});
}

namespace {

py_ort::Microkernels plain_or_relaxed[2];

int index_of(const py_ort::Microkernels& table, py_ort::MicroKernel kernel) {
  int index = 0;
#define PY_ORT_FIND(member, name)           \
  if (table.member == kernel) return index; \
  ++index;
  PY_ORT_MICROKERNELS(PY_ORT_FIND)
#undef PY_ORT_FIND
  return -1;
}

bool run_on_pool(py_ort::MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units, bool wake) {
  return microkernel_share(index_of(py_ort::microkernels(), kernel), reinterpret_cast<uintptr_t>(kernel), arguments,
                           scratch_bytes, units, wake);
}

}  // namespace

const char* ort_microkernel_names() {
#define PY_ORT_NAME(member, name) "\n" #name
  return &(PY_ORT_MICROKERNELS(PY_ORT_NAME))[1];
#undef PY_ORT_NAME
}

void ort_microkernels_add(int relaxed, uint32_t first) {
  py_ort::Microkernels& table = plain_or_relaxed[relaxed];
#define PY_ORT_POINTER(member, name) table.member = reinterpret_cast<py_ort::MicroKernel>(first++);
  PY_ORT_MICROKERNELS(PY_ORT_POINTER)
#undef PY_ORT_POINTER
}

void ort_microkernels_warm(int relaxed) {
  // Browsers optimize code that has run for long: 48 calls were too few in Chromium 156, and these take a few
  // milliseconds.
  constexpr int32_t kPieces = 256, kCalls = 192;
  constexpr size_t kFloats = (py_ort::F32Gemm::kRows + kPieces) * py_ort::F32Gemm::kColumns;
  py_ort::F32Gemm g;
  g.rows = py_ort::F32Gemm::kRows, g.n = py_ort::F32Gemm::kColumns, g.k = kPieces;
  const std::unique_ptr<float, decltype(&std::free)> memory(
      static_cast<float*>(py_ort::allocate(kFloats * sizeof(float) + g.scratch_bytes())), &std::free);
  if (!memory) return;
  std::fill_n(memory.get(), kFloats, 0.0f);
  g.a = g.b = memory.get();  // every row of A is the beginning of B
  g.c = memory.get() + static_cast<size_t>(kPieces) * g.n;
  g.c_stride = g.n;
  for (int32_t i = 0; i < kCalls; ++i) plain_or_relaxed[relaxed].f32_gemm(&g, memory.get() + kFloats, 0, 1);
}

void ort_microkernels_use(int relaxed, int threads) {
  py_ort::use_microkernels(relaxed < 0 ? py_ort::Microkernels{} : plain_or_relaxed[relaxed]);
  py_ort::install_microkernel_runner(run_on_pool, threads);
}
