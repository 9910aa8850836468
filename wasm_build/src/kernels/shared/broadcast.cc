#include "kernels/shared/broadcast.h"

#include <algorithm>

namespace py_ort {

Status broadcast_dims(const Dims& a, const Dims& b, Dims& out) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t x = back <= a.size() ? a[a.size() - back] : 1, y = back <= b.size() ? b[b.size() - back] : 1;
    if (x != y && x != 1 && y != 1)
      return runtime_error("the shapes ", a, " and ", b, " do not broadcast: ", x, " against ", y);
    dims[rank - back] = x == 1 ? y : x;
  }
  out = std::move(dims);
  return {};
}

Status Broadcast::make(std::initializer_list<const Dims*> operands, Broadcast& out) {
  out.dims.clear();
  for (const Dims* operand : operands) PY_ORT_TRY(broadcast_dims(out.dims, *operand, out.dims));
  // From the innermost axis outwards: an axis joins the next outer one if each operand steps contiguously (or stays) in
  // both.
  const size_t rank = out.dims.size();
  Offsets count{};
  count.fill(1);
  std::vector<Offsets> strides;
  Dims loops;
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t size = out.dims[rank - back];
    if (size == 1) continue;
    Offsets step{};
    bool joins = !loops.empty();
    size_t k = 0;
    for (const Dims* operand : operands) {
      const bool varies = back <= operand->size() && (*operand)[operand->size() - back] != 1;
      step[k] = varies ? count[k] : 0;
      if (varies) count[k] *= size;
      if (joins && step[k] != strides.back()[k] * loops.back()) joins = false;
      ++k;
    }
    if (joins) {
      loops.back() *= size;
    } else {
      loops.push_back(size);
      strides.push_back(step);
    }
  }
  if (loops.empty()) {
    out.inner = 1;
    out.steps.fill(0);
  } else {
    out.inner = loops.front();
    out.steps = strides.front();
    loops.erase(loops.begin());
    strides.erase(strides.begin());
  }
  out.outer_.assign(loops.rbegin(), loops.rend());
  out.strides_.assign(strides.rbegin(), strides.rend());
  return {};
}

}  // namespace py_ort
