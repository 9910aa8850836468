// The driver of elementwise operators with two operands: broadcasting, and widening to the lanes.
#pragma once

#include "kernels/shared/broadcast.h"
#include "kernels/shared/lanes.h"
#include "py_ort/kernel.h"

namespace py_ort {

// Computes `count` results; an operand of step 0 is one element. `extra` has the operator's own meaning.
using BinaryLoop = void (*)(const void* a, const void* b, void* out, size_t count, bool a_moves, bool b_moves,
                            int64_t extra);

// An operator's loops: for integers by width if signs do not matter, otherwise by lane. Null: no loop.
struct BinaryLoops {
  BinaryLoop lanes[kLanes] = {};
  BinaryLoop widths[4] = {};  // 1, 2, 4 and 8 bytes
};

// a op b, into a new output 0 of dtype `to`: the operands' dtype, or bool for loops that write bytes.
Status run_binary(KernelContext& context, const BinaryLoops& loops, const Tensor& a, const Tensor& b, DType to,
                  int64_t extra = 0);
// The same into any tensor of the right dtype and shape.
void apply_binary(const BinaryLoops& loops, const Broadcast& broadcast, const Tensor& a, const Tensor& b, Tensor& out,
                  int64_t extra = 0);

// Add, Sub, Mul, Div, Max, Min, for kernels that combine elements (variadic, scatter). Null for any other operator.
const BinaryLoops* arithmetic_loops(std::string_view op_type);
// Applies one of them, a op b, in a's dtype.
Status combine(std::string_view op_type, const Tensor& a, const Tensor& b, Tensor& out);

namespace detail {
// Functors without a state ignore `extra`.
template <class Op>
Op make_op(int64_t extra) {
  if constexpr (std::is_empty_v<Op>) return Op{};
  else return Op(extra);
}
template <class T, class R, class Op>
void binary_loop(const void* a, const void* b, void* out, size_t count, bool a_moves, bool b_moves, int64_t extra) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* __restrict z = static_cast<R*>(out);  // may be x or y itself: each element is read before it is written
  const Op op = make_op<Op>(extra);
  if (a_moves && b_moves) {
#pragma clang loop interleave_count(1) unroll(disable)
    for (size_t i = 0; i < count; ++i) z[i] = op(x[i], y[i]);
  } else if (a_moves) {
    const T s = *y;
#pragma clang loop interleave_count(1) unroll(disable)
    for (size_t i = 0; i < count; ++i) z[i] = op(x[i], s);
  } else {
    const T s = *x;
#pragma clang loop interleave_count(1) unroll(disable)
    for (size_t i = 0; i < count; ++i) z[i] = op(s, y[i]);
  }
}
}  // namespace detail

template <class Op>
constexpr BinaryLoops float_loops() {
  return {{&detail::binary_loop<float, float, Op>, &detail::binary_loop<double, double, Op>}, {}};
}
template <class Op>
constexpr BinaryLoops lane_loops() {
  return {{&detail::binary_loop<float, float, Op>, &detail::binary_loop<double, double, Op>,
           &detail::binary_loop<int32_t, int32_t, Op>, &detail::binary_loop<int64_t, int64_t, Op>,
           &detail::binary_loop<uint64_t, uint64_t, Op>},
          {}};
}
template <class Op>
constexpr BinaryLoops width_loops() {
  return {{},
          {&detail::binary_loop<uint8_t, uint8_t, Op>, &detail::binary_loop<uint16_t, uint16_t, Op>,
           &detail::binary_loop<uint32_t, uint32_t, Op>, &detail::binary_loop<uint64_t, uint64_t, Op>}};
}
// Floats by lane, all others by width.
template <class Op>
constexpr BinaryLoops mixed_loops() {
  BinaryLoops loops = width_loops<Op>();
  for (size_t i = 0; i < 2; ++i) loops.lanes[i] = float_loops<Op>().lanes[i];
  return loops;
}

}  // namespace py_ort
