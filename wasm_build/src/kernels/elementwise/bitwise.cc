// And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, BitShift, Not, BitwiseNot.
#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"

namespace py_ort {
namespace {

struct AndOp {
  template <class T> T operator()(T x, T y) const { return x & y; }
};
struct OrOp {
  template <class T> T operator()(T x, T y) const { return x | y; }
};
struct XorOp {
  template <class T> T operator()(T x, T y) const { return x ^ y; }
};
// extra: the number of bits, negative for a shift to the right. A distance outside [0, bits) shifts everything out.
struct ShiftOp {
  explicit ShiftOp(int64_t extra) : right(extra < 0), bits(extra < 0 ? -extra : extra) {}
  template <class T> T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return x;
    else if (static_cast<uint64_t>(y) >= static_cast<uint64_t>(bits))
      return right && x < T{0} ? static_cast<T>(-1) : T{0};
    else if (right) return static_cast<T>(x >> y);
    else return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << y);
  }
  bool right;
  int64_t bits;
};

constexpr BinaryLoops kAnd = width_loops<AndOp>(), kOr = width_loops<OrOp>(), kXor = width_loops<XorOp>();
constexpr BinaryLoops kShift{
    {nullptr, nullptr, &detail::binary_loop<int32_t, int32_t, ShiftOp>, &detail::binary_loop<int64_t, int64_t, ShiftOp>,
     &detail::binary_loop<uint64_t, uint64_t, ShiftOp>},
    {}};

class Bitwise {
 public:
  explicit Bitwise(const KernelInfo& info)
      : loops_(info.op_type.ends_with("And")   ? &kAnd
               : info.op_type.ends_with("Xor") ? &kXor
                                               : &kOr) {}
  Status operator()(KernelContext& context) const {
    return run_binary(context, *loops_, *context.input(0), *context.input(1), context.input(0)->dtype);
  }

 private:
  const BinaryLoops* loops_;
};

class BitShift {
 public:
  static Status make(const KernelInfo& info, BitShift& out) {
    const std::string direction = info.attributes.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
      return invalid_graph("BitShift's direction must be LEFT or RIGHT, not '", direction, "'");
    out.sign_ = direction == "LEFT" ? 1 : -1;
    return {};
  }
  Status operator()(KernelContext& context) const {
    const DType dtype = context.input(0)->dtype;
    return run_binary(context, kShift, *context.input(0), *context.input(1), dtype,
                      sign_ * 8 * static_cast<int64_t>(byte_size(dtype, 1)));
  }

 private:
  int64_t sign_ = 1;
};

// Maps each byte of a tensor separately.
template <class F>
Status each_byte(KernelContext& context, F f) {
  const Tensor& in = *context.input(0);
  Tensor* out = nullptr;
  PY_ORT_TRY(context.output(0, in.dtype, in.dims, out));
  const auto* x = in.data<uint8_t>();
  auto* __restrict y = out->mutable_data<uint8_t>();
  for (size_t i = 0, n = in.size_in_bytes(); i < n; ++i) y[i] = f(x[i]);
  return {};
}

struct Not {
  Status operator()(KernelContext& context) const {
    return each_byte(context, [](uint8_t x) { return uint8_t{x == 0}; });  // in feeds true may be any nonzero byte
  }
};

struct BitwiseNot {
  Status operator()(KernelContext& context) const {
    return each_byte(context, [](uint8_t x) { return static_cast<uint8_t>(~x); });
  }
};

PY_ORT_KERNEL("", "And", "bool", Bitwise);
PY_ORT_KERNEL("", "Or", "bool", Bitwise);
PY_ORT_KERNEL("", "Xor", "bool", Bitwise);
PY_ORT_KERNEL("", "BitwiseAnd", "=" PY_ORT_INTEGERS, Bitwise);
PY_ORT_KERNEL("", "BitwiseOr", "=" PY_ORT_INTEGERS, Bitwise);
PY_ORT_KERNEL("", "BitwiseXor", "=" PY_ORT_INTEGERS, Bitwise);
PY_ORT_KERNEL("", "BitShift", "=" PY_ORT_INTEGERS, BitShift);
PY_ORT_KERNEL("", "Not", "bool", Not);
PY_ORT_KERNEL("", "BitwiseNot", "=" PY_ORT_INTEGERS, BitwiseNot);

}  // namespace
}  // namespace py_ort
