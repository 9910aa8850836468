// com.microsoft QLinearAdd, QLinearMul and QLinearSoftmax. A result just between two steps goes where onnxruntime's
// does: its zero point is added before it is rounded, and sums and products are made in its order.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <wasm_simd128.h>

#include "kernels/shared/axes.h"
#include "kernels/shared/broadcast.h"
#include "kernels/shared/simd_math.h"
#include "kernels/quantization/integer_product.h"

namespace py_ort {
namespace {

// Sixteen bytes as vectors of four floats, and such vectors as bytes: rounded, saturated.
template <class T>
void widen(v128_t bytes, v128_t (&to)[4]) {
  // One with a sign is a greater one without.
  if (std::is_signed_v<T>) simd::floats_of(wasm_v128_xor(bytes, wasm_i8x16_splat(-128)), to, 128);
  else simd::floats_of(bytes, to);
}
template <class T>
v128_t narrow(const v128_t (&floats)[4]) {
  // Added to 1.5 * 2^23, a number is rounded to the nearest even, and its last bits are an integer's.
  const auto integer = [&](int i) {
    const v128_t near = wasm_f32x4_pmin(wasm_f32x4_pmax(floats[i], wasm_f32x4_splat(-1024)), wasm_f32x4_splat(1024));
    return wasm_i32x4_sub(wasm_f32x4_add(near, wasm_f32x4_splat(12582912)), wasm_i32x4_splat(0x4b400000));
  };
  const v128_t low = wasm_i16x8_narrow_i32x4(integer(0), integer(1));
  const v128_t high = wasm_i16x8_narrow_i32x4(integer(2), integer(3));
  return std::is_signed_v<T> ? wasm_i8x16_narrow_i16x8(low, high) : wasm_u8x16_narrow_i16x8(low, high);
}

// A row of bytes, or the one that stands for all of them.
template <class T>
struct Row {
  const T* data;
  int64_t step;  // 1 or 0
  v128_t load(int64_t i) const { return step ? wasm_v128_load(data + i) : wasm_i8x16_splat(*data); }
  // What is left of one, count < 16.
  v128_t load(int64_t i, int64_t count) const {
    T bytes[16] = {};
    if (step) std::copy_n(data + i, count, bytes);
    return step ? wasm_v128_load(bytes) : wasm_i8x16_splat(*data);
  }
};

// value(four numbers of p, four of q): the result's, not yet rounded.
template <class T, class Value>
[[gnu::noinline]] void combine(Row<T> p, Row<T> q, int64_t count, T* to, const Value& value) {
  const auto sixteen = [&](v128_t left, v128_t right) {
    v128_t a[4], b[4];
    widen<T>(left, a), widen<T>(right, b);
    for (int i = 0; i < 4; ++i) a[i] = value(a[i], b[i]);
    return narrow<T>(a);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) wasm_v128_store(to + i, sixteen(p.load(i), q.load(i)));
  if (i == count) return;
  T last[16];
  wasm_v128_store(last, sixteen(p.load(i, count - i), q.load(i, count - i)));
  std::copy_n(last, count - i, to + i);
}

// Inputs: a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
class QLinearArithmetic {
 public:
  explicit QLinearArithmetic(const KernelInfo& info) : multiply_(info.op_type == "QLinearMul") {}

  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(3);
    PerAxis scales[3], zeros[3];  // of a, b and the result
    for (size_t i = 0; i < 3; ++i) {
      PY_ORT_TRY(PerAxis::read(context.input(3 * i + (i < 2 ? 1 : 0)), 1, "a scale", scales[i]));
      PY_ORT_TRY(PerAxis::read(context.input(3 * i + (i < 2 ? 2 : 1)), 1, "a zero point", zeros[i]));
    }
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
    Tensor* y;
    PY_ORT_TRY(context.output(0, a.dtype, broadcast.dims, y));
    const float a_scale = scales[0][0] / scales[2][0], b_scale = scales[1][0] / scales[2][0];
    const v128_t left = wasm_f32x4_splat(a_scale), right = wasm_f32x4_splat(b_scale);
    const v128_t fixed = wasm_f32x4_splat(zeros[2][0] - (a_scale * zeros[0][0] + b_scale * zeros[1][0]));
    const v128_t product = wasm_f32x4_splat(scales[0][0] * scales[1][0] / scales[2][0]);
    const v128_t zero = wasm_f32x4_splat(zeros[2][0]);
    const v128_t a_zero = wasm_f32x4_splat(zeros[0][0]), b_zero = wasm_f32x4_splat(zeros[1][0]);
    const auto rows = [&]<class T>(T* to) {
      broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
        const Row<T> p{a.data<T>() + offsets[0], broadcast.steps[0]}, q{b.data<T>() + offsets[1], broadcast.steps[1]};
        if (multiply_) {
          combine(p, q, broadcast.inner, to + at, [&](v128_t x, v128_t z) {
            const v128_t exact = wasm_f32x4_mul(wasm_f32x4_sub(x, a_zero), wasm_f32x4_sub(z, b_zero));
            return wasm_f32x4_add(wasm_f32x4_mul(exact, product), zero);
          });
        } else {
          combine(p, q, broadcast.inner, to + at, [&](v128_t x, v128_t z) {
            const v128_t first = wasm_f32x4_add(fixed, wasm_f32x4_mul(x, left));
            return wasm_f32x4_add(first, wasm_f32x4_mul(z, right));
          });
        }
      });
    };
    if (a.dtype == DType::uint8) rows(y->mutable_data<uint8_t>());
    else rows(y->mutable_data<int8_t>());
    return {};
  }

 private:
  bool multiply_;
};

// What a softmax of bytes is made with.
struct Softmax {
  float powers[256];  // of how far an element is below the largest
  float steps;        // to 1, whole as onnxruntime has them
  v128_t zero;        // the result's zero point
  uint8_t flip;       // what makes bytes with a sign greater ones without

  // Of a row whose elements lie next to each other.
  [[gnu::noinline]] void operator()(const uint8_t* x, int64_t length, uint8_t* y) const {
    uint8_t most = 0;
    for (int64_t i = 0; i < length; ++i) most = std::max<uint8_t>(most, x[i] ^ flip);
    float sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += powers[most - (x[i] ^ flip)];
    int64_t i = 0;
    for (; i + 16 <= length; i += 16) wasm_v128_store(y + i, sixteen(x + i, most, sum));
    if (i == length) return;
    uint8_t last[16];
    std::fill(std::copy_n(x + i, length - i, last), last + 16, most ^ flip);
    wasm_v128_store(last, sixteen(last, most, sum));
    std::copy_n(last, length - i, y + i);
  }

 private:
  [[gnu::noinline]] v128_t sixteen(const uint8_t* x, int32_t most, float sum) const {
    v128_t shares[4];
    for (int k = 0; k < 4; ++k) {
      const auto power = [&](int lane) { return powers[most - (x[4 * k + lane] ^ flip)]; };
      const v128_t scaled =
          wasm_f32x4_mul(wasm_f32x4_make(power(0), power(1), power(2), power(3)), wasm_f32x4_splat(steps));
      shares[k] = wasm_f32x4_add(wasm_f32x4_nearest(wasm_f32x4_div(scaled, wasm_f32x4_splat(sum))), zero);
    }
    return flip ? narrow<int8_t>(shares) : narrow<uint8_t>(shares);
  }
};

// Inputs: x, its scale and zero point (which changes nothing), y's scale and zero point.
class QLinearSoftmax {
 public:
  explicit QLinearSoftmax(const KernelInfo& info) : axis_(info.attributes.integer("axis", -1)) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PerAxis x_scale, y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "x_scale", x_scale));
    PY_ORT_TRY(PerAxis::read(context.input(3), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(4), 1, "y_zero_point", y_zero));
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, x.rank(), axis));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    if (x.count() == 0) return {};
    Softmax softmax{{},
                    std::floor(1 / y_scale[0]),
                    wasm_f32x4_splat(static_cast<float>(y_zero.integer(0))),
                    flip_to_unsigned(x.dtype)};
    for (int i = 0; i < 256; ++i)
      softmax.powers[i] = static_cast<float>(std::exp(-static_cast<double>(i) * x_scale[0]));
    const int64_t length = x.dim(axis), inner = count_between(x.dims, axis + 1, x.rank());
    const auto* from = x.data<uint8_t>();
    auto* to = y->mutable_data<uint8_t>();
    std::vector<uint8_t> row(inner == 1 ? 0 : static_cast<size_t>(length));
    for (int64_t at = 0; at < x.count(); at += length * inner)
      for (int64_t k = at; k < at + inner; ++k) {
        if (inner == 1) {
          softmax(from + k, length, to + k);
          continue;
        }
        for (int64_t i = 0; i < length; ++i) row[static_cast<size_t>(i)] = from[k + i * inner];
        softmax(row.data(), length, row.data());
        for (int64_t i = 0; i < length; ++i) to[k + i * inner] = row[static_cast<size_t>(i)];
      }
    return {};
  }

 private:
  int64_t axis_;
};

constexpr const char* kTwo = "int8,uint8;float32;int8,uint8;int8,uint8;float32;int8,uint8;float32;int8,uint8";
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearAdd", kTwo, QLinearArithmetic);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearMul", kTwo, QLinearArithmetic);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearSoftmax", "int8,uint8;float32;int8,uint8;float32;int8,uint8", QLinearSoftmax);

}  // namespace
}  // namespace py_ort
