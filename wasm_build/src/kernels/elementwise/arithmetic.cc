// Add, Sub, Mul, Div, Mod, Max, Min, Sum, Mean, PRelu.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"

namespace py_ort {
namespace {

struct AddOp {
  template <class T> T operator()(T x, T y) const { return static_cast<T>(x + y); }
};
struct SubOp {
  template <class T> T operator()(T x, T y) const { return static_cast<T>(x - y); }
};
struct MulOp {
  template <class T> T operator()(T x, T y) const {
    if constexpr (sizeof(T) < 4) return static_cast<T>(uint32_t{x} * uint32_t{y});  // unsigned: int would overflow
    else return x * y;
  }
};
struct DivOp {
  template <class T> T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      // The smallest integer divided by -1 traps; unsigned negation wraps it to itself.
      using U = std::make_unsigned_t<T>;
      return y == -1 ? static_cast<T>(U{0} - static_cast<U>(x)) : x / y;
    } else {
      return x / y;
    }
  }
};
// extra: 1 for the remainder with the dividend's sign (C), 0 for the divisor's (Python).
struct ModOp {
  explicit ModOp(int64_t extra) : c_like(extra != 0) {}
  template <class T> T operator()(T x, T y) const {
    T r;
    if constexpr (std::is_floating_point_v<T>) r = std::fmod(x, y);
    else if constexpr (std::is_signed_v<T>) r = y == -1 ? T{0} : static_cast<T>(x % y);
    else return x % y;
    if (!c_like && r != 0 && (r < 0) != (y < 0)) r += y;
    if constexpr (std::is_floating_point_v<T>)
      if (!c_like && r == 0) r = std::copysign(r, y);
    return r;
  }
  bool c_like;
};
// A NaN on either side is the result.
struct MaxOp {
  template <class T> T operator()(T x, T y) const { return x > y || x != x ? x : y; }
};
struct MinOp {
  template <class T> T operator()(T x, T y) const { return x < y || x != x ? x : y; }
};
struct PReluOp {
  template <class T> T operator()(T x, T slope) const { return x < T{0} ? static_cast<T>(x * slope) : x; }
};

constexpr BinaryLoops kAdd = mixed_loops<AddOp>(), kSub = mixed_loops<SubOp>(), kMul = mixed_loops<MulOp>(),
                      kDiv = lane_loops<DivOp>(), kMod = lane_loops<ModOp>(), kMax = lane_loops<MaxOp>(),
                      kMin = lane_loops<MinOp>(), kPRelu = lane_loops<PReluOp>();

struct Named {
  std::string_view op_type;
  const BinaryLoops* loops;
};
constexpr Named kNamed[] = {{"Add", &kAdd}, {"Sub", &kSub}, {"Mul", &kMul}, {"Div", &kDiv},
                            {"Max", &kMax}, {"Min", &kMin}, {"Sum", &kAdd}, {"Mean", &kAdd}};

Status check_divisor(const Tensor& divisor) {
  const Lane lane = lane_of(divisor.dtype);
  if (lane == Lane::f32 || lane == Lane::f64) return {};
  const size_t width = byte_size(divisor.dtype, 1);
  const char* bytes = divisor.data<char>();
  for (int64_t i = 0, n = divisor.count(); i < n; ++i, bytes += width)
    if (std::all_of(bytes, bytes + width, [](char c) { return c == 0; }))
      return runtime_error("integer division by 0: element ", i, " of the divisor (", dtype_name(divisor.dtype), " ",
                           divisor.dims, ")");
  return {};
}

class Arithmetic {
 public:
  explicit Arithmetic(const KernelInfo& info)
      : loops_(arithmetic_loops(info.op_type)), divides_(info.op_type == "Div") {}
  Status operator()(KernelContext& context) const {
    if (divides_) PY_ORT_TRY(check_divisor(*context.input(1)));
    return run_binary(context, *loops_, *context.input(0), *context.input(1), context.input(0)->dtype);
  }

 private:
  const BinaryLoops* loops_;
  bool divides_;
};

class Mod {
 public:
  explicit Mod(const KernelInfo& info) : fmod_(info.attributes.integer("fmod", 0)) {}
  Status operator()(KernelContext& context) const {
    PY_ORT_TRY(check_divisor(*context.input(1)));
    return run_binary(context, kMod, *context.input(0), *context.input(1), context.input(0)->dtype, fmod_);
  }

 private:
  int64_t fmod_;
};

struct PRelu {
  Status operator()(KernelContext& context) const {
    // In ONNX slopes broadcast to the input's shape; as natively, either may be the wider one.
    return run_binary(context, kPRelu, *context.input(0), *context.input(1), context.input(0)->dtype);
  }
};

// Max, Min, Sum and Mean of any number of operands: pairwise, in lanes until the end, so that float16 is rounded once.
class Variadic {
 public:
  explicit Variadic(const KernelInfo& info) : loops_(arithmetic_loops(info.op_type)), mean_(info.op_type == "Mean") {}
  Status operator()(KernelContext& context) const {
    const DType dtype = context.input(0)->dtype;
    const size_t count = context.input_count();
    if (count == 2 && !mean_) return run_binary(context, *loops_, *context.input(0), *context.input(1), dtype);
    Tensor total;
    PY_ORT_TRY(widened(*context.input(0), total));
    for (size_t i = 1; i < count; ++i) {
      Tensor next, sum;
      PY_ORT_TRY(widened(*context.input(i), next));
      PY_ORT_TRY(combine(*loops_, total, next, sum));
      total = std::move(sum);
    }
    if (mean_ && count > 1) {
      Tensor divisor, mean;
      const double n = static_cast<double>(count);
      PY_ORT_TRY(Tensor::make(total.dtype, {}, divisor));
      convert_lane(Lane::f64, &n, lane_of(total.dtype), divisor.storage->data(), 1);
      PY_ORT_TRY(combine(kDiv, total, divisor, mean));
      total = std::move(mean);
    }
    Tensor result;
    PY_ORT_TRY(cast(total, dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  static Status combine(const BinaryLoops& loops, const Tensor& a, const Tensor& b, Tensor& out) {
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
    PY_ORT_TRY(Tensor::make(a.dtype, broadcast.dims, out));
    apply_binary(loops, broadcast, a, b, out);
    return {};
  }
  const BinaryLoops* loops_;
  bool mean_;
};

PY_ORT_KERNEL("", "Add", "=" PY_ORT_NUMBERS, Arithmetic);
PY_ORT_KERNEL("", "Sub", "=" PY_ORT_NUMBERS, Arithmetic);
PY_ORT_KERNEL("", "Mul", "=" PY_ORT_NUMBERS, Arithmetic);
PY_ORT_KERNEL("", "Div", "=" PY_ORT_NUMBERS, Arithmetic);
PY_ORT_KERNEL("", "Mod", "=" PY_ORT_NUMBERS, Mod);
PY_ORT_KERNEL("", "PRelu", "=" PY_ORT_FLOATS ",int32,int64,uint32,uint64", PRelu);
PY_ORT_KERNEL("", "Max", "=" PY_ORT_NUMBERS, Variadic);
PY_ORT_KERNEL("", "Min", "=" PY_ORT_NUMBERS, Variadic);
PY_ORT_KERNEL("", "Sum", "=" PY_ORT_FLOATS, Variadic);
PY_ORT_KERNEL("", "Mean", "=" PY_ORT_FLOATS, Variadic);

}  // namespace

const BinaryLoops* arithmetic_loops(std::string_view op_type) {
  for (const Named& named : kNamed)
    if (named.op_type == op_type) return named.loops;
  return nullptr;
}

}  // namespace py_ort
