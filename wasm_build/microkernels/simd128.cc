// The table for plain SIMD128, built into the core, and how micro-kernels are run.
#include <cstdlib>

#include "py_ort/microkernels.h"

namespace py_ort {

#define PY_ORT_DECLARE(member, name) extern "C" void name##__simd128(const void*, void*, int32_t, int32_t);
PY_ORT_MICROKERNELS(PY_ORT_DECLARE)
#undef PY_ORT_DECLARE

#define PY_ORT_ENTRY(member, name) name##__simd128,
const Microkernels kSimd128Microkernels = {PY_ORT_MICROKERNELS(PY_ORT_ENTRY)};
#undef PY_ORT_ENTRY

namespace {
bool run_here(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units) {
  static void* scratch = nullptr;  // kept: most kernels ask for about the same
  static size_t size = 0;
  if (scratch_bytes > size) {
    std::free(scratch);
    size = (scratch_bytes + 63) / 64 * 64;
    scratch = std::aligned_alloc(64, size);
    if (!scratch) {
      size = 0;
      return false;
    }
  }
  kernel(arguments, scratch, 0, units);
  return true;
}

Microkernels table = kSimd128Microkernels;
MicroKernelRunner run = run_here;
int worker_count = 1;
}  // namespace

const Microkernels& microkernels() { return table; }
void use_microkernels(const Microkernels& other) { table = other; }
void install_microkernel_runner(MicroKernelRunner runner, int workers) {
  run = runner;
  worker_count = workers;
}
int microkernel_workers() { return worker_count; }
bool run_microkernel(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units) {
  return units <= 0 || run(kernel, arguments, scratch_bytes, units);
}

}  // namespace py_ort
