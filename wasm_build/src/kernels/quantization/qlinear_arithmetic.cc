// com.microsoft QLinearAdd, QLinearMul and QLinearSoftmax.
#include <algorithm>
#include <cmath>
#include <vector>

#include <wasm_simd128.h>

#include "kernels/shared/axes.h"
#include "kernels/shared/broadcast.h"
#include "kernels/shared/simd_math.h"
#include "kernels/quantization/byte_lanes.h"
#include "kernels/quantization/integer_product.h"

namespace py_ort {
namespace {

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
    I8Map m;
    m.kind = multiply_ ? I8Map::product : I8Map::sum;
    m.is_signed = a.dtype == DType::int8;
    m.n = broadcast.inner;
    m.a_step = static_cast<int32_t>(broadcast.steps[0]), m.b_step = static_cast<int32_t>(broadcast.steps[1]);
    m.a_zero = zeros[0][0], m.b_zero = zeros[1][0], m.y_zero = zeros[2][0];
    m.a_scale = scales[0][0] / scales[2][0], m.b_scale = scales[1][0] / scales[2][0];
    m.fixed = m.y_zero - (m.a_scale * m.a_zero + m.b_scale * m.b_zero);
    m.scale = scales[0][0] * scales[1][0] / scales[2][0];
    const auto *p = a.data<uint8_t>(), *q = b.data<uint8_t>();
    auto* to = y->mutable_data<uint8_t>();
    broadcast.for_each_block(
        [&](const Broadcast::Offsets& offsets, int64_t at, int64_t rows, const Broadcast::Offsets& strides) {
      m.rows = rows, m.a_row = strides[0], m.b_row = strides[1];
      m.a = p + offsets[0], m.b = q + offsets[1], m.y = to + at;
      run_microkernel(microkernels().i8_map, m);
    });
    return {};
  }

 private:
  bool multiply_;
};

// The parameters of a softmax of bytes.
struct Softmax {
  float powers[256];  // by the distance of an element from the largest
  float steps;        // to 1, whole as in onnxruntime
  v128_t zero;        // the result's zero point
  uint8_t flip;       // converts signed bytes to unsigned ones

  // For a row of contiguous elements.
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
    return flip ? narrow<true>(shares) : narrow<false>(shares);
  }
};

// Inputs: x, its scale and zero point (which has no effect), y's scale and zero point.
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
