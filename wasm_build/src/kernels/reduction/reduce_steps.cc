#include <wasm_simd128.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reduction/reduce.h"

namespace py_ort {
namespace {

struct SumStep {
  template <class T> static T apply(T total, T x) { return total + x; }
};
struct AbsStep {
  template <class T> static T apply(T total, T x) { return total + (x < T{0} ? T{0} - x : x); }
};
struct SquareStep {
  template <class T> static T apply(T total, T x) { return total + x * x; }
};
struct MaxStep {
  template <class T> static T apply(T most, T x) { return x > most || x != x ? x : most; }
};
struct MinStep {
  template <class T> static T apply(T least, T x) { return x < least || x != x ? x : least; }
};
struct ProductStep {
  template <class T> static T apply(T product, T x) { return product * x; }
};

// Integers wrap, so they are added as unsigned ones.
template <class T, class S>
constexpr bool wraps = std::is_integral_v<T> && !std::is_same_v<S, MaxStep> && !std::is_same_v<S, MinStep>;
template <class S, class T>
T apply(T total, T x) {
  if constexpr (wraps<T, S> && !std::is_same_v<S, AbsStep>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(S::apply(static_cast<U>(total), static_cast<U>(x)));
  } else {
    return S::apply(total, x);
  }
}

// Combines partial results, without taking magnitudes or squares again.
template <class S>
using CombineStep = std::conditional_t<std::is_same_v<S, AbsStep> || std::is_same_v<S, SquareStep>, SumStep, S>;

// Only floats are worth SIMD code; the other lanes get small loops.
template <class T>
constexpr bool is_hot = std::is_same_v<T, float>;

// One result from a row. For floats sixteen partial results keep the SIMD units busy, and make sums more exact.
template <class T, class S>
T reduce_row(const T* x, int64_t count, T identity) {
  constexpr int64_t parts = 16;
  if (!is_hot<T> || count < parts) {
    T total = identity;
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t i = 0; i < count; ++i) total = apply<S>(total, x[i]);
    return total;
  }
  if constexpr (is_hot<T> && (std::is_same_v<S, MaxStep> || std::is_same_v<S, MinStep>)) {
    // These instructions propagate NaNs, like the steps; the compiler does not recognize this.
    const auto best = [](v128_t a, v128_t b) {
      return std::is_same_v<S, MaxStep> ? wasm_f32x4_max(a, b) : wasm_f32x4_min(a, b);
    };
    v128_t v = wasm_v128_load(x);
    for (int64_t i = 4; i + 4 <= count; i += 4) v = best(v, wasm_v128_load(x + i));
    v = best(v, wasm_v128_load(x + count - 4));
    v = best(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(best(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2)), 0);
  }
  T part[parts];
  std::fill_n(part, parts, identity);
  int64_t i = 0;
  for (; i + parts <= count; i += parts)
    for (int64_t k = 0; k < parts; ++k) part[k] = apply<S>(part[k], x[i + k]);
  for (int64_t k = 0; i + k < count; ++k) part[k] = apply<S>(part[k], x[i + k]);
  for (int64_t half = parts / 2; half; half /= 2)
    for (int64_t k = 0; k < half; ++k) part[k] = apply<CombineStep<S>>(part[k], part[k + half]);
  return part[0];
}

// Combines to[i] with x[i].
template <class T, class S>
void reduce_into(const T* x, T* __restrict to, int64_t count) {
  if constexpr (is_hot<T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = apply<S>(to[i], x[i]);
  } else {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t i = 0; i < count; ++i) to[i] = apply<S>(to[i], x[i]);
  }
}

// The loops of one lane and step; the code around them is the same for all.
struct Kernels {
  void (*row)(const void* x, int64_t count, const void* identity, void* total);  // a row into one total
  void (*into)(const void* x, void* totals, int64_t count);                      // a row into an equal number of totals
};
template <class T, class S>
constexpr Kernels kKernels{[](const void* x, int64_t count, const void* identity, void* total) {
  T& to = *static_cast<T*>(total);
  to = apply<CombineStep<S>>(to, reduce_row<T, S>(static_cast<const T*>(x), count, *static_cast<const T*>(identity)));
}, [](const void* x, void* totals, int64_t count) {
  reduce_into<T, S>(static_cast<const T*>(x), static_cast<T*>(totals), count);
}};

void walk_loops(const char* x, char* y, size_t width, const std::vector<ReduceLoop>& loops, const Kernels& kernels,
                const void* identity) {
  const ReduceLoop inner = loops.empty() ? ReduceLoop{1, 1, false} : loops.back();
  const size_t depth = loops.empty() ? 0 : loops.size() - 1;
  const auto bytes = static_cast<ptrdiff_t>(width);
  Dims index(depth);
  int64_t rows = 1;
  for (size_t d = 0; d < depth; ++d) rows *= loops[d].size;
  for (int64_t row = 0; row < rows; ++row, x += inner.size * bytes) {
    if (inner.reduced) kernels.row(x, inner.size, identity, y);
    else kernels.into(x, y, inner.size);
    for (size_t d = depth; d-- > 0;) {
      y += loops[d].step * bytes;
      if (++index[d] < loops[d].size) break;
      y -= loops[d].step * loops[d].size * bytes;
      index[d] = 0;
    }
  }
}

template <class T>
const Kernels& kernels_of(Step step) {
  switch (step) {
    case Step::sum: return kKernels<T, SumStep>;
    case Step::sum_abs: return kKernels<T, AbsStep>;
    case Step::sum_squares: return kKernels<T, SquareStep>;
    case Step::max: return kKernels<T, MaxStep>;
    case Step::min: return kKernels<T, MinStep>;
    case Step::product: break;
  }
  return kKernels<T, ProductStep>;
}

template <class T>
T identity_of(Step step, DType dtype) {
  if (step == Step::product) return T{1};
  if (step != Step::max && step != Step::min) return T{0};
  const bool max = step == Step::max;
  if constexpr (std::is_floating_point_v<T>) {
    return max ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  } else {
    switch (dtype) {
      case DType::bool_: return static_cast<T>(!max);
      case DType::int8: return static_cast<T>(max ? INT8_MIN : INT8_MAX);
      case DType::uint8: return static_cast<T>(max ? 0 : UINT8_MAX);
      case DType::int16: return static_cast<T>(max ? INT16_MIN : INT16_MAX);
      case DType::uint16: return static_cast<T>(max ? 0 : UINT16_MAX);
      case DType::uint32: return static_cast<T>(max ? 0 : UINT32_MAX);
      default: return max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    }
  }
}

}  // namespace

ReducedAxes reduced_axes(const Dims& dims, const std::vector<int64_t>& axes, bool keep) {
  ReducedAxes out;
  out.reduced.resize(dims.size());
  for (const int64_t axis : axes) out.reduced[static_cast<size_t>(axis)] = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (out.reduced[i]) out.count *= dims[i];
    out.kept_dims.push_back(out.reduced[i] ? 1 : dims[i]);
    if (!out.reduced[i] || keep) out.dims.push_back(out.kept_dims.back());
  }
  return out;
}

std::vector<ReduceLoop> reduce_loops(const Dims& dims, const ReducedAxes& axes) {
  std::vector<ReduceLoop> loops;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!loops.empty() && loops.back().reduced == axes.reduced[i]) loops.back().size *= dims[i];
    else loops.push_back({dims[i], 0, axes.reduced[i]});
  }
  int64_t stride = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    if (loops[i].reduced) continue;
    loops[i].step = stride;
    stride *= loops[i].size;
  }
  return loops;
}

void reduce(Step step, const Tensor& in, const ReducedAxes& axes, DType dtype, Tensor& out) {
  const std::vector<ReduceLoop> loops = reduce_loops(in.dims, axes);
  visit_lane(lane_of(in.dtype), [&]<class T>() {
    T identity = identity_of<T>(step, dtype);
    if (in.count() == 0) {
      std::fill_n(out.mutable_data<T>(), out.count(), identity);
      return;
    }
    if constexpr (std::is_floating_point_v<T>)
      if (step == Step::sum) identity = -identity;  // the sum of -0 and -0 is -0
    std::fill_n(out.mutable_data<T>(), out.count(), identity);
    walk_loops(in.data<char>(), out.mutable_data<char>(), sizeof(T), loops, kernels_of<T>(step), &identity);
  });
}

ReduceStream::ReduceStream(Step step, const Dims& dims, const ReducedAxes& axes, float* totals, int64_t outputs)
    : step_(step), loops_(reduce_loops(dims, axes)), totals_(totals),
      identity_(identity_of<float>(step, DType::float32)) {
  if (loops_.empty()) loops_.push_back({1, 1, false});
  index_.resize(loops_.size() - 1);
  std::fill_n(totals, outputs, identity_);
}

void ReduceStream::take(const float* x, int64_t count) {
  const Kernels& kernels = kernels_of<float>(step_);
  const ReduceLoop inner = loops_.back();
  while (count > 0) {
    const int64_t run = std::min(inner.size - within_, count);
    if (inner.reduced) kernels.row(x, run, &identity_, totals_);
    else kernels.into(x, totals_ + within_, run);
    x += run, count -= run, within_ += run;
    if (within_ < inner.size) return;
    within_ = 0;
    for (size_t d = index_.size(); d-- > 0;) {
      totals_ += loops_[d].step;
      if (++index_[d] < loops_[d].size) break;
      totals_ -= loops_[d].step * loops_[d].size;
      index_[d] = 0;
    }
  }
}

}  // namespace py_ort
