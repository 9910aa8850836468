// Equal, Less, LessOrEqual, Greater, GreaterOrEqual.
#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"

namespace py_ort {
namespace {

struct EqualOp {
  template <class T> uint8_t operator()(T x, T y) const { return x == y; }
};
struct LessOp {
  template <class T> uint8_t operator()(T x, T y) const { return x < y; }
};
struct LessOrEqualOp {
  template <class T> uint8_t operator()(T x, T y) const { return x <= y; }
};

template <class T, class Op>
inline constexpr BinaryLoop kTest = &detail::binary_loop<T, uint8_t, Op>;
template <class Op>
constexpr BinaryLoops kOrder{
    {kTest<float, Op>, kTest<double, Op>, kTest<int32_t, Op>, kTest<int64_t, Op>, kTest<uint64_t, Op>}, {}};
constexpr BinaryLoops kEqual{
    {kTest<float, EqualOp>, kTest<double, EqualOp>},
    {kTest<uint8_t, EqualOp>, kTest<uint16_t, EqualOp>, kTest<uint32_t, EqualOp>, kTest<uint64_t, EqualOp>}};

Status equal_strings(KernelContext& context, const Tensor& a, const Tensor& b) {
  Broadcast broadcast;
  PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
  Tensor* out = nullptr;
  PY_ORT_TRY(context.output(0, DType::bool_, broadcast.dims, out));
  auto* to = out->mutable_data<uint8_t>();
  broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
    for (int64_t i = 0; i < broadcast.inner; ++i)
      to[at + i] = a.strings()[offsets[0] + i * broadcast.steps[0]] == b.strings()[offsets[1] + i * broadcast.steps[1]];
  });
  return {};
}

class Comparison {
 public:
  explicit Comparison(const KernelInfo& info)
      : loops_(info.op_type == "Equal"             ? &kEqual
               : info.op_type.ends_with("OrEqual") ? &kOrder<LessOrEqualOp>
                                                   : &kOrder<LessOp>),
        swapped_(info.op_type.starts_with("Greater")) {}
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(swapped_ ? 1 : 0), &b = *context.input(swapped_ ? 0 : 1);
    if (a.dtype == DType::string_) return equal_strings(context, a, b);
    return run_binary(context, *loops_, a, b, DType::bool_);
  }

 private:
  const BinaryLoops* loops_;
  bool swapped_;
};

PY_ORT_KERNEL("", "Equal", "=" PY_ORT_NUMBERS ",bool,string", Comparison);
PY_ORT_KERNEL("", "Less", "=" PY_ORT_NUMBERS, Comparison);
PY_ORT_KERNEL("", "LessOrEqual", "=" PY_ORT_NUMBERS, Comparison);
PY_ORT_KERNEL("", "Greater", "=" PY_ORT_NUMBERS, Comparison);
PY_ORT_KERNEL("", "GreaterOrEqual", "=" PY_ORT_NUMBERS, Comparison);

}  // namespace
}  // namespace py_ort
