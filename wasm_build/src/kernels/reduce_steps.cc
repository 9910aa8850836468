#include <algorithm>
#include <cmath>
#include <limits>

#include "reduce.h"

namespace py_ort {
namespace {

struct SumStep { template <class T> static T apply(T total, T x) { return total + x; } };
struct AbsStep { template <class T> static T apply(T total, T x) { return total + (x < T{0} ? T{0} - x : x); } };
struct SquareStep { template <class T> static T apply(T total, T x) { return total + x * x; } };
struct MaxStep { template <class T> static T apply(T most, T x) { return x > most || x != x ? x : most; } };
struct MinStep { template <class T> static T apply(T least, T x) { return x < least || x != x ? x : least; } };
struct ProductStep { template <class T> static T apply(T product, T x) { return product * x; } };

// Integers wrap, which only unsigned ones may.
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

// Partial results are combined as they are: not made absolute, nor squared, once more.
template <class S>
using CombineStep = std::conditional_t<std::is_same_v<S, AbsStep> || std::is_same_v<S, SquareStep>, SumStep, S>;

// One result from a row. Sixteen partial results keep the SIMD units busy, and sums exact to more digits.
template <class T, class S>
T reduce_row(const T* x, int64_t count, T identity) {
  constexpr int64_t parts = 16;
  using Combine = CombineStep<S>;
  if (count < parts) {
    T total = identity;
    for (int64_t i = 0; i < count; ++i) total = apply<S>(total, x[i]);
    return total;
  }
  T part[parts];
  std::fill_n(part, parts, identity);
  int64_t i = 0;
  for (; i + parts <= count; i += parts)
    for (int64_t k = 0; k < parts; ++k) part[k] = apply<S>(part[k], x[i + k]);
  for (int64_t k = 0; i + k < count; ++k) part[k] = apply<S>(part[k], x[i + k]);
  for (int64_t half = parts / 2; half; half /= 2)
    for (int64_t k = 0; k < half; ++k) part[k] = apply<Combine>(part[k], part[k + half]);
  return part[0];
}

struct Loop { int64_t size, step; bool reduced; };  // step: of the output; 0 when reduced

template <class T, class S>
void reduce_loops(const T* x, T* y, const std::vector<Loop>& loops, T identity) {
  if (loops.empty()) {
    *y = apply<S>(*y, *x);
    return;
  }
  using Combine = CombineStep<S>;
  const Loop inner = loops.back();
  const size_t depth = loops.size() - 1;
  Dims index(depth);
  int64_t rows = 1;
  for (size_t d = 0; d < depth; ++d) rows *= loops[d].size;
  for (int64_t row = 0; row < rows; ++row, x += inner.size) {
    if (inner.reduced) {
      *y = apply<Combine>(*y, reduce_row<T, S>(x, inner.size, identity));
    } else {
      T* __restrict to = y;
      for (int64_t i = 0; i < inner.size; ++i) to[i] = apply<S>(to[i], x[i]);
    }
    for (size_t d = depth; d-- > 0;) {
      y += loops[d].step;
      if (++index[d] < loops[d].size) break;
      y -= loops[d].step * loops[d].size;
      index[d] = 0;
    }
  }
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

void reduce(Step step, const Tensor& in, const ReducedAxes& axes, DType dtype, Tensor& out) {
  // Neighbouring axes of one kind are one loop.
  std::vector<Loop> loops;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (in.dims[i] == 1) continue;
    if (!loops.empty() && loops.back().reduced == axes.reduced[i]) loops.back().size *= in.dims[i];
    else loops.push_back({in.dims[i], 0, axes.reduced[i]});
  }
  int64_t stride = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    if (loops[i].reduced) continue;
    loops[i].step = stride;
    stride *= loops[i].size;
  }
  visit_lane(lane_of(in.dtype), [&]<class T>() {
    const T identity = identity_of<T>(step, dtype);
    std::fill_n(out.mutable_data<T>(), out.count(), identity);
    if (in.count() == 0) return;
    const auto run = [&]<class S>(S) { reduce_loops<T, S>(in.data<T>(), out.mutable_data<T>(), loops, identity); };
    switch (step) {
      case Step::sum: return run(SumStep{});
      case Step::sum_abs: return run(AbsStep{});
      case Step::sum_squares: return run(SquareStep{});
      case Step::max: return run(MaxStep{});
      case Step::min: return run(MinStep{});
      case Step::product: return run(ProductStep{});
    }
  });
}

}  // namespace py_ort
