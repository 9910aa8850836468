// Cast, CastLike, BitCast.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kernels/shared/elements.h"
#include "kernels/shared/float_bits.h"
#include "kernels/shared/lanes.h"
#include "py_ort/decimal.h"

namespace py_ort {
namespace {

// Eight digits for all types, as in onnxruntime.
std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  return to_text(value, 8);
}

Status to_strings(const Tensor& in, Tensor& out) {
  PY_ORT_TRY(Tensor::make(DType::string_, in.dims, out));
  Tensor wide;
  PY_ORT_TRY(widened(in, wide));
  std::string* to = out.mutable_strings();
  visit_lane(lane_of(in.dtype), [&]<class T>() {
    size_t i = 0;
    for (const T value : wide.values<T>()) {
      if constexpr (std::is_floating_point_v<T>) to[i++] = text_of(value);
      else if (in.dtype == DType::bool_) to[i++] = value ? "1" : "0";
      else to[i++] = std::to_string(value);
    }
  });
  return {};
}

Status from_strings(const Tensor& in, DType to, Tensor& out) {
  const Lane lane = lane_of(to);
  Tensor wide;
  PY_ORT_TRY(Tensor::make(lane_dtype(lane), in.dims, wide));
  for (int64_t i = 0, n = in.count(); i < n; ++i) {
    const std::string& text = in.strings()[i];
    size_t used = 0;
    visit_lane(lane, [&]<class T>() {
      T& element = wide.mutable_data<T>()[i];
      if constexpr (std::is_same_v<T, float>) {
        element = to_float(text, used);
      } else if constexpr (std::is_same_v<T, double>) {
        element = to_double(text, used);
      } else {
        const char* begin = text.c_str();
        char* end = nullptr;
        element = static_cast<T>(std::is_same_v<T, uint64_t> ? std::strtoull(begin, &end, 10)
                                                             : static_cast<uint64_t>(std::strtoll(begin, &end, 10)));
        used = static_cast<size_t>(end - begin);
        if (used != text.size()) element = static_cast<T>(to_double(text, used));  // "100.5" may become 100
      }
    });
    PY_ORT_ENSURE(used == text.size() && !text.empty(), "Cast: element ", i, ", '", text, "', is not a number");
  }
  return cast(wide, to, out);
}

struct Rounding {
  bool saturate = true;
  E8M0Round e8m0 = E8M0Round::up;
};

// To the 8-bit floats, for which the attributes matter.
Status to_small_float(const Tensor& in, DType to, Rounding rounding, Tensor& out) {
  Tensor wide;
  PY_ORT_TRY(cast(in, DType::float32, wide));
  PY_ORT_TRY(Tensor::make(to, in.dims, out));
  const SmallFloat* format = small_float(to);
  auto* bits = out.mutable_data<uint8_t>();
  for (const float x : wide.values<float>())
    *bits++ =
        format ? encode_small_float(*format, x, rounding.saturate) : encode_e8m0(x, rounding.saturate, rounding.e8m0);
  return {};
}

Status cast_any(const Tensor& in, DType to, Rounding rounding, Tensor& out) {
  if (in.dtype == to) {
    out = in;
    return {};
  }
  if (to == DType::string_) return to_strings(in, out);
  if (in.dtype == DType::string_) return from_strings(in, to, out);
  if (to == DType::float8e8m0 || (small_float(to) && !is_sub_byte(to))) return to_small_float(in, to, rounding, out);
  return cast(in, to, out);
}

class Cast {
 public:
  static Status make(const KernelInfo& info, Cast& out) {
    out.to_ = static_cast<DType>(info.attributes.integer("to", 0));
    out.rounding_.saturate = info.attributes.integer("saturate", 1) != 0;
    const std::string mode = info.attributes.text("round_mode", "up");
    out.rounding_.e8m0 = mode == "down" ? E8M0Round::down : mode == "nearest" ? E8M0Round::nearest : E8M0Round::up;
    if (info.op_type != "CastLike" && (out.to_ == DType::undefined || out.to_ > DType::int2))
      return not_implemented(info.op_type, " to dtype number ", static_cast<int>(out.to_));
    return {};
  }
  Status operator()(KernelContext& context) const {
    Tensor result;
    PY_ORT_TRY(cast_any(*context.input(0), to_ == DType::undefined ? context.input(1)->dtype : to_, rounding_, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  DType to_ = DType::undefined;
  Rounding rounding_;
};

class BitCast {
 public:
  explicit BitCast(const KernelInfo& info) : to_(static_cast<DType>(info.attributes.integer("to", 0))) {}
  Status operator()(KernelContext& context) const {
    Tensor out = *context.input(0);
    PY_ORT_ENSURE(out.dtype != DType::string_ && byte_size(out.dtype, 4) == byte_size(to_, 4), "BitCast from ",
                  dtype_name(out.dtype), " to ", dtype_name(to_), ": their sizes differ");
    out.dtype = to_;
    context.output(0, std::move(out));
    return {};
  }

 private:
  DType to_;
};

PY_ORT_KERNEL("", "Cast", "*", Cast);
PY_ORT_KERNEL("", "CastLike", "*;~*", Cast);
PY_ORT_KERNEL("", "BitCast", "*", BitCast);

}  // namespace
}  // namespace py_ort
