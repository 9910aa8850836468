// Runs micro-kernels: on this thread, on workers that are awake, or on all workers if it is worth waking them.
#include "py_ort/recurrent_steps.h"

#include <algorithm>
#include <cstdlib>

namespace py_ort {
namespace {

Microkernels table{};
MicroKernelRunner runner = nullptr;
int worker_count = 1;

// About how many products of four floats, or work of the same time.
double work(const F32Gemm& g) { return 0.25 * g.rows * g.n * g.k * g.taps; }
double work(const F32Pack& p) { return 1.0 * p.matrices * p.n * p.k; }
double work(const F32Winograd& w) { return 4.0 * w.tiles() * w.n * w.k; }
double work(const F32Depthwise& d) { return 0.25 * d.window->pixels_out() * d.window->taps() * d.channels; }
double work(const F32Pool& p) { return 0.25 * p.window->pixels_out() * p.window->taps_inside() * p.channels; }
// Cheap functions are limited by memory, which threads share.
double work(const F32Map& m) {
#define PY_ORT_WORK(kind, cheap) , cheap ? 0.1 : 6.0
  static constexpr double each[] = {0.1 PY_ORT_VECTOR_FUNCTIONS(PY_ORT_WORK)};
#undef PY_ORT_WORK
  return each[m.function.kind] * m.count;
}
double work(const F32Softmax& s) { return 6.0 * s.outer * s.n * s.inner; }
double work(const F32Attention& a) { return (0.25 * (a.qk_size + a.v_size) + 8) * a.head_count * a.rows * a.columns; }
double work(const F32Normalize& n) { return 3.0 * n.rows * n.n; }
double work(const I8Gemm& g) { return 0.1 * g.rows * g.n * g.k * g.taps; }
double work(const I8Quantize& q) { return 3.0 * static_cast<double>(q.count); }
double work(const I8Map& m) { return 1.5 * static_cast<double>(m.rows * m.n); }
double work(const I8Depthwise& d) { return 0.25 * d.window->pixels_out() * d.window->taps() * d.n; }
// With few rows, most of it is unpacking the weights, and memory.
double work(const BlockProduct& p) {
  const double weights = 1.0 * p.n * p.k;
  return weights * (p.integers ? 0.3 + 0.08 * p.rows : 0.8 + 0.25 * p.rows);
}
double work_of_step(const RecurrentSteps& p) {
  const double weights = 1.0 * p.directions * p.gates() * p.hidden * p.hidden;
  return weights * p.batch * (p.direction->integers ? 0.1 : 0.25);
}
// In pieces, steps are run one by one.
double work(const RecurrentSteps& p) { return work_of_step(p) * (p.pieces > 1 ? 1 : p.steps); }
double work_of_rows(const BlockProduct& p) { return 1.0 * p.rows * p.k; }
// Some 35 microseconds. Two threads needed 21 for work of 15, and 34 for work of 40.
constexpr double kWorthSharing = 131072;
// A sleeping worker starts late: after some 50 microseconds, or after milliseconds in virtual machines that wake it on
// the processor of the thread that waits for it. It is therefore woken only for work of 100 microseconds, or once a run
// has shared work of two milliseconds. Short runs never wake it.
constexpr double kWorthWaking = 3 * kWorthSharing, kWorthWakingInAll = 60 * kWorthSharing;
double offered = 0;  // in this run

template <class Arguments>
double work_of(const void* arguments) {
  return work(*static_cast<const Arguments*>(arguments));
}
double work_of(MicroKernel kernel, const void* arguments) {
  if (kernel == table.f32_gemm) return work_of<F32Gemm>(arguments);
  if (kernel == table.f32_pack) return work_of<F32Pack>(arguments);
  if (kernel == table.f32_winograd) return work_of<F32Winograd>(arguments);
  if (kernel == table.f32_depthwise) return work_of<F32Depthwise>(arguments);
  if (kernel == table.f32_pool) return work_of<F32Pool>(arguments);
  if (kernel == table.f32_map) return work_of<F32Map>(arguments);
  if (kernel == table.f32_softmax) return work_of<F32Softmax>(arguments);
  if (kernel == table.f32_attention) return work_of<F32Attention>(arguments);
  if (kernel == table.f32_normalize) return work_of<F32Normalize>(arguments);
  if (kernel == table.i8_quantize) return work_of<I8Quantize>(arguments);
  if (kernel == table.i8_map) return work_of<I8Map>(arguments);
  if (kernel == table.i8_depthwise) return work_of<I8Depthwise>(arguments);
  if (kernel == table.recurrent_steps) return work_of<RecurrentSteps>(arguments);
  if (kernel == table.block_rows) return work_of_rows(*static_cast<const BlockProduct*>(arguments));
  if (kernel == table.block_columns || kernel == table.block_tiles) return work_of<BlockProduct>(arguments);
  return kernel == table.i8_gemm ? work_of<I8Gemm>(arguments) : 0;
}

// The number of units in a call. Large work is done in several calls: a browser begins with code that it compiles
// quickly, and a running function keeps that code; only the next call uses the optimized code.
int32_t piece_of(MicroKernel kernel, const void* arguments, int32_t units) {
  constexpr double kWorthACall = 65536;
  const double pieces = work_of(kernel, arguments) / kWorthACall;
  if (pieces <= 1) return units;
  const int32_t block = kernel == table.f32_gemm  ? static_cast<const F32Gemm*>(arguments)->block()
                        : kernel == table.i8_gemm ? static_cast<const I8Gemm*>(arguments)->block()
                                                  : 1;
  return static_cast<int32_t>(units / pieces) / block * block + block;
}

bool run_here(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units) {
  static void* scratch = nullptr;  // kept: most kernels need about the same size
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
  const int32_t piece = piece_of(kernel, arguments, units);
  for (int32_t begin = 0; begin < units; begin += piece)
    kernel(arguments, scratch, begin, std::min(begin + piece, units));
  return true;
}

bool run(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units) {
  if (worker_count == 1) return run_here(kernel, arguments, scratch_bytes, units);
  const double work = work_of(kernel, arguments);
  offered += work;
  return runner(kernel, arguments, scratch_bytes, units, work >= kWorthWaking || offered >= kWorthWakingInAll);
}

// Chunks for each worker, which it runs one after the other (web/src/core/thread_pool.ts).
constexpr int32_t kChunks = 4;
// With fewer tiles in a chunk the weights are read more often than necessary.
constexpr int32_t kTilesInChunk = 6;

// Divides the larger operand, so that no worker reads all of it: into as many pieces of the columns as there are
// chunks. If there are more rows than columns, also into pieces if blocks of rows are too few to be balanced.
template <class Gemm>
bool share_gemm(MicroKernel kernel, const void* given) {
  Gemm g = *static_cast<const Gemm*>(given);
  const int32_t chunks = kChunks * worker_count, even = chunks * kTilesInChunk / g.units();
  g.column_pieces = std::clamp(g.n > g.rows ? chunks : even, 1, std::max(1, g.n / (2 * Gemm::kColumns)));
  return run(kernel, &g, g.scratch_bytes(), g.units());
}

// As many pieces of the channels as give each worker two units, unless the pieces are small: each piece transforms all
// pixels.
bool share_winograd(MicroKernel kernel, const void* given) {
  F32Winograd f = *static_cast<const F32Winograd*>(given);
  const int32_t most = std::max(1, f.n / F32Winograd::kLeastColumns), blocks = f.blocks();
  f.column_pieces = std::clamp((2 * worker_count + blocks - 1) / blocks, 1, most);
  return run(kernel, &f, f.scratch_bytes(), f.units());
}

// Each direction has a worker, and runs in one call. If more workers are free and a step is large enough, all workers
// share each step.
bool share_recurrent_steps(MicroKernel kernel, const void* given) {
  RecurrentSteps p = *static_cast<const RecurrentSteps*>(given);
  constexpr double kWorthSharingEach = 2 * kWorthSharing;
  const int32_t pieces = std::min(kChunks * worker_count / p.directions, p.width / RecurrentSteps::kLeastColumns);
  if (p.directions >= worker_count || pieces < 2 || work_of_step(p) < kWorthSharingEach)
    return (p.directions > 1 ? run : run_here)(kernel, &p, p.scratch_bytes(), p.units());
  p.pieces = pieces;
  for (p.step = 0; p.step < p.steps; ++p.step)
    for (p.phase = 0; p.phase < p.phases(); ++p.phase)
      if (!run(kernel, &p, p.scratch_bytes(), p.units())) return false;
  return true;
}

}  // namespace

const Microkernels& microkernels() { return table; }
void use_microkernels(const Microkernels& other) { table = other; }
void install_microkernel_runner(MicroKernelRunner given, int workers) {
  runner = given, worker_count = workers, offered = 0;
}
bool run_microkernel(MicroKernel kernel, const void* arguments, size_t scratch_bytes, int32_t units) {
  if (units <= 0) return true;
  if (worker_count == 1 || work_of(kernel, arguments) < kWorthSharing)
    return run_here(kernel, arguments, scratch_bytes, units);
  if (kernel == table.f32_gemm) return share_gemm<F32Gemm>(kernel, arguments);
  if (kernel == table.i8_gemm) return share_gemm<I8Gemm>(kernel, arguments);
  if (kernel == table.f32_winograd) return share_winograd(kernel, arguments);
  if (kernel == table.recurrent_steps) return share_recurrent_steps(kernel, arguments);
  return run(kernel, arguments, scratch_bytes, units);
}

}  // namespace py_ort
