// com.microsoft QLinearAdd, QLinearMul and QLinearSoftmax. A result just between two steps goes where onnxruntime's
// does: its zero point is added before it is rounded, and sums and products are made in its order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/shared/axes.h"
#include "kernels/shared/broadcast.h"
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
    const float left = scales[0][0] / scales[2][0], right = scales[1][0] / scales[2][0];
    const float product = scales[0][0] * scales[1][0] / scales[2][0], zero = zeros[2][0];
    const float fixed = zero - (left * zeros[0][0] + right * zeros[1][0]);
    const int32_t a_zero = zeros[0].integer(0), b_zero = zeros[1].integer(0);
    const auto rows = [&]<class T>(T* to) {
      broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
        const T *p = a.data<T>() + offsets[0], *q = b.data<T>() + offsets[1];
        const auto combine = [&](int64_t p_step, int64_t q_step) {
          if (multiply_) {
            run<T>(broadcast.inner, to + at, [&](int64_t i) {
              return static_cast<float>((p[i * p_step] - a_zero) * (q[i * q_step] - b_zero)) * product + zero;
            });
          } else {
            run<T>(broadcast.inner, to + at, [&](int64_t i) {
              return fixed + static_cast<float>(p[i * p_step]) * left + static_cast<float>(q[i * q_step]) * right;
            });
          }
        };
        if (broadcast.steps[0] && broadcast.steps[1]) combine(1, 1);  // whole vectors
        else combine(broadcast.steps[0], broadcast.steps[1]);
      });
    };
    if (a.dtype == DType::uint8) rows(y->mutable_data<uint8_t>());
    else rows(y->mutable_data<int8_t>());
    return {};
  }

 private:
  template <class T, class Value>
  static void run(int64_t count, T* __restrict to, const Value& value) {
    constexpr float kLow = std::numeric_limits<T>::lowest(), kHigh = std::numeric_limits<T>::max();
    for (int64_t i = 0; i < count; ++i) {
      const float rounded = std::nearbyint(value(i));
      to[i] = static_cast<T>(static_cast<int32_t>(std::min(std::max(rounded, kLow), kHigh)));
    }
  }

  bool multiply_;
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
    const int64_t length = x.dim(axis), inner = count_between(x.dims, axis + 1, x.rank());
    if (x.count() == 0) return {};
    float powers[256];  // of how far an element is below the largest
    for (int i = 0; i < 256; ++i) powers[i] = static_cast<float>(std::exp(-static_cast<double>(i) * x_scale[0]));
    const float steps = std::floor(1 / y_scale[0]);  // whole, as onnxruntime has it
    for (int64_t row = 0; row < x.count() / length; ++row) {
      const int64_t first = row / inner * length * inner + row % inner;
      int32_t most = integer_at(x, first);
      for (int64_t i = 1; i < length; ++i) most = std::max(most, integer_at(x, first + i * inner));
      float sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += powers[most - integer_at(x, first + i * inner)];
      for (int64_t i = 0; i < length; ++i)
        store_quantized(*y, first + i * inner, powers[most - integer_at(x, first + i * inner)] * steps / sum,
                        y_zero.integer(0));
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
