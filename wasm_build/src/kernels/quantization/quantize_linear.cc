// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, DynamicFakeQuantize.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/float_bits.h"
#include "kernels/shared/lanes.h"
#include "kernels/quantization/quantization.h"
#include "kernels/shared/simd_math.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/integer_products.h"

namespace py_ort {

Status Granularity::make(const Tensor& x, const Tensor& scale, const Tensor* zero_point, int64_t axis,
                         int64_t block_size, Granularity& out) {
  PY_ORT_ENSURE(!zero_point || zero_point->count() == scale.count(), "a zero point of shape ", zero_point->dims,
                " for scales of shape ", scale.dims);
  out = {};
  if (scale.count() == 1 && scale.rank() <= 1) {
    out.outer = x.count();
    return {};
  }
  out.one_scale = false;
  PY_ORT_TRY(normalize_axis(axis, x.rank(), axis));
  out.outer = count_between(x.dims, 0, axis);
  out.size = x.dim(axis);
  out.inner = count_between(x.dims, axis + 1, x.rank());
  if (scale.rank() <= 1 && block_size <= 0) {
    out.blocks = out.size;
    PY_ORT_ENSURE(scale.count() == out.size, scale.count(), " scales for axis ", axis, " of shape ", x.dims);
    return {};
  }
  Dims expected = x.dims;
  PY_ORT_ENSURE(scale.rank() == x.rank(), "scales of shape ", scale.dims, " for a tensor of shape ", x.dims);
  out.blocked = true;
  out.blocks = expected[axis] = scale.dim(axis);
  out.block_size = block_size > 0 ? block_size : (out.size + out.blocks - 1) / std::max<int64_t>(out.blocks, 1);
  PY_ORT_ENSURE(scale.dims == expected && (out.size + out.block_size - 1) / out.block_size <= out.blocks,
                "scales of shape ", scale.dims, " for blocks of ", out.block_size, " along axis ", axis, " of shape ",
                x.dims);
  return {};
}

bool quantized_range(DType dtype, IntegerRange& out) {
  switch (dtype) {
    case DType::uint8: out = {0, 255}; return true;
    case DType::int8: out = {-128, 127}; return true;
    case DType::uint16: out = {0, 65535}; return true;
    case DType::int16: out = {-32768, 32767}; return true;
    case DType::uint4: out = {0, 15}; return true;
    case DType::int4: out = {-8, 7}; return true;
    case DType::uint2: out = {0, 3}; return true;
    case DType::int2: out = {-2, 1}; return true;
    default: return false;
  }
}

void quantize(const float* x, int64_t count, float scale, float zero, bool is_signed, void* y) {
  // Scales along the last axis have runs of one element, for which a micro-kernel's call takes longer.
  if (count <= I8Quantize::kBlock) return quantize_bytes(x, count, scale, zero, is_signed, y);
  I8Quantize q;
  q.x = x, q.count = count, q.scale = scale, q.zero = zero, q.is_signed = is_signed, q.y = y;
  run_microkernel(microkernels().i8_quantize, q);
}

DynamicRange quantize_dynamically(const float* x, int64_t count, uint8_t* y) {
  const DynamicRange range = dynamic_range_of(x, count);
  quantize(x, count, range.scale, range.zero, false, y);
  return range;
}

namespace {

class QuantizeLinear {
 public:
  explicit QuantizeLinear(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", 1)), block_size_(info.attributes.integer("block_size", 0)),
        saturate_(info.attributes.integer("saturate", 1) != 0),
        to_(static_cast<DType>(info.attributes.integer("output_dtype", 0))),
        precision_(static_cast<DType>(info.attributes.integer("precision", 0))) {}
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1);
    const Tensor* zero_point = context.input(2);
    const DType to = zero_point ? zero_point->dtype : to_ == DType::undefined ? DType::uint8 : to_;
    const DType precision = precision_ == DType::undefined ? scale.dtype : precision_;
    Granularity granularity;
    PY_ORT_TRY(Granularity::make(x, scale, zero_point, axis_, block_size_, granularity));
    Tensor wide, scales, zeros, values, result;
    PY_ORT_TRY(cast(x, DType::float32, wide));
    PY_ORT_TRY(cast(scale, DType::float32, scales));
    if (zero_point) PY_ORT_TRY(cast(*zero_point, DType::float32, zeros));
    IntegerRange range{};
    const bool is_integer = quantized_range(to, range);
    if (precision == DType::float32 && !granularity.blocked && (to == DType::uint8 || to == DType::int8)) {
      Tensor* bytes = nullptr;
      PY_ORT_TRY(context.output(0, to, x.dims, bytes));
      granularity.for_each_run([&](int64_t at, int64_t count, int64_t index, int64_t) {
        const float zero = zero_point ? zeros.data<float>()[index] : 0;
        quantize(wide.data<float>() + at, count, scales.data<float>()[index], zero, to == DType::int8,
                 static_cast<uint8_t*>(bytes->storage->data()) + at);
      });
      return {};
    }
    PY_ORT_TRY(Tensor::make(DType::float32, x.dims, values));
    const float *from = wide.data<float>(), *s = scales.data<float>(), *z = zero_point ? zeros.data<float>() : nullptr;
    float* out = values.mutable_data<float>();
    granularity.for_each_run([&](int64_t at, int64_t count, int64_t index, int64_t step) {
      for (int64_t i = 0; i < count; ++i, index += step) {
        float quotient = from[at + i] / s[index];
        if (precision == DType::float16) quotient = to_float(to_float16(quotient));
        else if (precision == DType::bfloat16) quotient = to_float(to_bfloat16(quotient));
        const float zero = z ? z[index] : 0;
        out[at + i] = is_integer ? std::clamp(std::nearbyint(quotient) + zero, range.low, range.high) : quotient + zero;
      }
    });
    const SmallFloat* format = small_float(to);
    if (format && !is_sub_byte(to)) {
      PY_ORT_TRY(Tensor::make(to, x.dims, result));
      for (int64_t i = 0, n = x.count(); i < n; ++i)
        result.mutable_data<uint8_t>()[i] = encode_small_float(*format, out[i], saturate_);
    } else {
      PY_ORT_TRY(cast(values, to, result));
    }
    context.output(0, std::move(result));
    return {};
  }

 private:
  int64_t axis_, block_size_;
  bool saturate_;
  DType to_, precision_;
};

// Four numbers minus zero, as floats.
inline v128_t less(const float* from, float zero) { return simd::sub(simd::load(from), simd::splat(zero)); }
inline v128_t less(const int32_t* from, int32_t zero) {
  return wasm_f32x4_convert_i32x4(wasm_i32x4_sub(wasm_v128_load(from), wasm_i32x4_splat(zero)));
}

class DequantizeLinear {
 public:
  explicit DequantizeLinear(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", 1)), block_size_(info.attributes.integer("block_size", 0)),
        to_(static_cast<DType>(info.attributes.integer("output_dtype", 0))) {}
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &scale = *context.input(1);
    const Tensor* zero_point = context.input(2);
    Granularity granularity;
    PY_ORT_TRY(Granularity::make(x, scale, zero_point, axis_, block_size_, granularity));
    Tensor wide, scales, zeros, values, result;
    PY_ORT_TRY(widened(x, wide));
    PY_ORT_TRY(cast(scale, DType::float32, scales));
    if (zero_point) PY_ORT_TRY(widened(*zero_point, zeros));
    PY_ORT_TRY(Tensor::make(DType::float32, x.dims, values));
    const float* s = scales.data<float>();
    float* __restrict out = values.mutable_data<float>();
    // Integers are subtracted as integers: int32 has more digits than a float.
    const auto run = [&]<class T>() {
      const T *from = wide.data<T>(), *z = zero_point ? zeros.data<T>() : nullptr;
      granularity.for_each_run([&](int64_t at, int64_t count, int64_t index, int64_t step) {
        if (step == 0) {
          const float factor = s[index];
          const T zero = z ? z[index] : T{0};
          int64_t i = 0;
          for (; i + 4 <= count; i += 4)
            simd::store(out + at + i, simd::mul(less(from + at + i, zero), simd::splat(factor)));
          for (; i < count; ++i) out[at + i] = static_cast<float>(from[at + i] - zero) * factor;
        } else {
          for (int64_t i = 0; i < count; ++i, ++index)
            out[at + i] = static_cast<float>(from[at + i] - (z ? z[index] : T{0})) * s[index];
        }
      });
    };
    if (lane_of(x.dtype) == Lane::f32) run.template operator()<float>();
    else run.template operator()<int32_t>();
    PY_ORT_TRY(cast(values,
                    to_ != DType::undefined            ? to_
                    : scale.dtype == DType::float8e8m0 ? DType::float32
                                                       : scale.dtype,
                    result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  int64_t axis_, block_size_;
  DType to_;
};

struct DynamicQuantizeLinear {
  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Tensor *y = nullptr, *scale_out = nullptr, *zero_out = nullptr;
    PY_ORT_TRY(context.output(0, DType::uint8, x.dims, y));
    PY_ORT_TRY(context.output(1, DType::float32, {}, scale_out));
    PY_ORT_TRY(context.output(2, DType::uint8, {}, zero_out));
    const DynamicRange range = quantize_dynamically(x.data<float>(), x.count(), y->mutable_data<uint8_t>());
    *scale_out->mutable_data<float>() = range.scale;
    *zero_out->mutable_data<uint8_t>() = static_cast<uint8_t>(range.zero);
    return {};
  }
};

// Rounds to the steps of DynamicQuantizeLinear's integers and back.
struct DynamicFakeQuantize {
  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Tensor *y = nullptr, integers;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    PY_ORT_TRY(Tensor::make(DType::uint8, x.dims, integers));
    const DynamicRange range = quantize_dynamically(x.data<float>(), x.count(), integers.mutable_data<uint8_t>());
    const uint8_t* in = integers.data<uint8_t>();
    float* out = y->mutable_data<float>();
    for (int64_t i = 0, count = x.count(); i < count; ++i)
      out[i] = (static_cast<float>(in[i]) - range.zero) * range.scale;
    return {};
  }
};

#define PY_ORT_QUANTIZED "int8,uint8,int16,uint16,int32," PY_ORT_FLOAT8 "," PY_ORT_SUB_BYTE
#define PY_ORT_SCALES "float32,float16,bfloat16,float8e8m0"
PY_ORT_KERNEL("", "QuantizeLinear", "float32,float16,bfloat16,int32;" PY_ORT_SCALES ",int32;" PY_ORT_QUANTIZED,
              QuantizeLinear);
PY_ORT_KERNEL("", "DequantizeLinear", PY_ORT_QUANTIZED ";" PY_ORT_SCALES ";" PY_ORT_QUANTIZED, DequantizeLinear);
PY_ORT_KERNEL("", "DynamicQuantizeLinear", "float32", DynamicQuantizeLinear);
PY_ORT_KERNEL(dialect::kInternalDomain, dialect::kDynamicFakeQuantize, "float32", DynamicFakeQuantize);
#undef PY_ORT_QUANTIZED
#undef PY_ORT_SCALES

}  // namespace
}  // namespace py_ort
