#include "kernels/shared/lanes.h"

#include <wasm_simd128.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/shared/float_bits.h"
#include "kernels/shared/half_lanes.h"

namespace py_ort {

Lane lane_of(DType dtype) {
  switch (dtype) {
    case DType::float64: return Lane::f64;
    case DType::int64:
    case DType::uint32: return Lane::i64;
    case DType::uint64: return Lane::u64;
    case DType::int32:
    case DType::int16:
    case DType::uint16:
    case DType::int8:
    case DType::uint8:
    case DType::bool_:
    case DType::int4:
    case DType::uint4:
    case DType::int2:
    case DType::uint2: return Lane::i32;
    default: return Lane::f32;
  }
}

DType lane_dtype(Lane lane) {
  static constexpr DType dtypes[kLanes] = {DType::float32, DType::float64, DType::int32, DType::int64, DType::uint64};
  return dtypes[static_cast<size_t>(lane)];
}

namespace {

template <class From, class To>
const void* widen_array(const void* data, int64_t offset, size_t count, void* scratch) {
  const auto* from = static_cast<const From*>(data) + offset;
  auto* __restrict to = static_cast<To*>(scratch);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, float>) to[i] = to_float(from[i]);
    else to[i] = static_cast<To>(from[i]);
  }
  return scratch;
}
template <class From, class To>
void narrow_array(const void* wide, void* data, int64_t offset, size_t count) {
  const auto* from = static_cast<const From*>(wide);
  auto* __restrict to = static_cast<To*>(data) + offset;
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, bool>) to[i] = from[i] != 0;
    else to[i] = static_cast<To>(from[i]);
  }
}

// `decode(bits)` and `encode(value)` receive one element's bits; the first element is in a byte's lowest bits, as ONNX
// packs them.
template <class To, class Decode>
const void* unpack(int bits, const void* data, int64_t offset, size_t count, void* scratch, Decode decode) {
  const auto* from = static_cast<const uint8_t*>(data);
  auto* to = static_cast<To*>(scratch);
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(offset) + i;
    to[i] = decode(from[at / per_byte] >> at % per_byte * bits & mask);
  }
  return scratch;
}
template <class From, class Encode>
void pack(int bits, const void* wide, void* data, int64_t offset, size_t count, Encode encode) {
  const auto* from = static_cast<const From*>(wide);
  auto* to = static_cast<uint8_t*>(data);
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(offset) + i;
    const int shift = static_cast<int>(at % per_byte) * bits;
    const int element = (encode(from[i]) & mask) << shift;
    to[at / per_byte] = static_cast<uint8_t>(shift ? to[at / per_byte] | element : element);
  }
}

}  // namespace

const void* widen(DType dtype, const void* data, int64_t offset, size_t count, void* scratch) {
  switch (dtype) {
    case DType::float16:
      widen_float16(static_cast<const uint16_t*>(data) + offset, static_cast<float*>(scratch), count);
      return scratch;
    case DType::bfloat16: return widen_array<BFloat16, float>(data, offset, count, scratch);
    case DType::int16: return widen_array<int16_t, int32_t>(data, offset, count, scratch);
    case DType::uint16: return widen_array<uint16_t, int32_t>(data, offset, count, scratch);
    case DType::int8: return widen_array<int8_t, int32_t>(data, offset, count, scratch);
    case DType::uint8:
    case DType::bool_: return widen_array<uint8_t, int32_t>(data, offset, count, scratch);
    case DType::uint32: return widen_array<uint32_t, int64_t>(data, offset, count, scratch);
    case DType::uint4: return unpack<int32_t>(4, data, offset, count, scratch, [](int x) { return x; });
    case DType::int4:
      return unpack<int32_t>(4, data, offset, count, scratch, [](int x) { return x >= 8 ? x - 16 : x; });
    case DType::uint2: return unpack<int32_t>(2, data, offset, count, scratch, [](int x) { return x; });
    case DType::int2: return unpack<int32_t>(2, data, offset, count, scratch, [](int x) { return x >= 2 ? x - 4 : x; });
    case DType::float8e8m0:
      return unpack<float>(8, data, offset, count, scratch, [](int x) { return decode_e8m0(static_cast<uint8_t>(x)); });
    default: break;
  }
  if (const SmallFloat* format = small_float(dtype)) {
    const int bits = 1 + format->exponent_bits + format->mantissa_bits;
    return unpack<float>(bits, data, offset, count, scratch,
                         [&](int x) { return decode_small_float(*format, static_cast<uint8_t>(x)); });
  }
  return static_cast<const char*>(data) + static_cast<size_t>(offset) * lane_size(lane_of(dtype));
}

void narrow(DType dtype, const void* wide, void* data, int64_t offset, size_t count) {
  const auto same = [](int32_t x) { return x; };
  switch (dtype) {
    case DType::float16:
      return narrow_float16(static_cast<const float*>(wide), static_cast<uint16_t*>(data) + offset, count);
    case DType::bfloat16:
      return narrow_bfloat16(static_cast<const float*>(wide), static_cast<uint16_t*>(data) + offset, count);
    case DType::int16:
    case DType::uint16: return narrow_array<int32_t, uint16_t>(wide, data, offset, count);
    case DType::int8:
    case DType::uint8: return narrow_array<int32_t, uint8_t>(wide, data, offset, count);
    case DType::bool_: return narrow_array<int32_t, bool>(wide, data, offset, count);
    case DType::uint32: return narrow_array<int64_t, uint32_t>(wide, data, offset, count);
    case DType::uint4:
    case DType::int4: return pack<int32_t>(4, wide, data, offset, count, same);
    case DType::uint2:
    case DType::int2: return pack<int32_t>(2, wide, data, offset, count, same);
    case DType::float8e8m0:
      return pack<float>(8, wide, data, offset, count, [](float x) { return encode_e8m0(x, true, E8M0Round::up); });
    default: break;
  }
  if (const SmallFloat* format = small_float(dtype)) {
    const int bits = 1 + format->exponent_bits + format->mantissa_bits;
    return pack<float>(bits, wide, data, offset, count, [&](float x) { return encode_small_float(*format, x, true); });
  }
  void* to = static_cast<char*>(data) + static_cast<size_t>(offset) * lane_size(lane_of(dtype));
  if (to != wide) std::memcpy(to, wide, count * lane_size(lane_of(dtype)));
}

namespace {
// As on x86, and in native onnxruntime: a number that does not fit, or NaN, becomes the smallest integer. Narrower
// types use its low bits.
template <class To, class T>
To truncated(T x) {
  using Signed = std::make_signed_t<To>;
  constexpr T beyond = -static_cast<T>(std::numeric_limits<Signed>::min());
  const auto fitted = [](T y) {
    return std::abs(y) < beyond ? static_cast<Signed>(y) : std::numeric_limits<Signed>::min();
  };
  if (std::is_signed_v<To> || !(x >= beyond)) return static_cast<To>(fitted(x));
  return static_cast<To>(fitted(x - beyond)) ^ static_cast<To>(std::numeric_limits<Signed>::min());
}

void truncate(const float* x, int32_t* __restrict y, size_t count) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const v128_t four = wasm_v128_load(x + i);
    const v128_t fits = wasm_f32x4_lt(wasm_f32x4_abs(four), wasm_f32x4_splat(2147483648.0f));
    const v128_t least = wasm_i32x4_splat(INT32_MIN);
    wasm_v128_store(y + i, wasm_v128_bitselect(wasm_i32x4_trunc_sat_f32x4(four), least, fits));
  }
  for (; i < count; ++i) y[i] = truncated<int32_t>(x[i]);
}
}  // namespace

void convert_lane(Lane from, const void* in, Lane to, void* out, size_t count) {
  if (from == Lane::f32 && to == Lane::i32)
    return truncate(static_cast<const float*>(in), static_cast<int32_t*>(out), count);
  visit_lane(from, [&]<class From>() {
    visit_lane(to, [&]<class To>() {
      const auto* x = static_cast<const From*>(in);
      auto* __restrict y = static_cast<To*>(out);
      for (size_t i = 0; i < count; ++i) {
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) y[i] = truncated<To>(x[i]);
        else y[i] = static_cast<To>(x[i]);
      }
    });
  });
}

namespace {
bool rounds_to(DType dtype) {
  return dtype == DType::int4 || dtype == DType::uint4 || dtype == DType::int2 || dtype == DType::uint2;
}
}  // namespace

Status cast(const Tensor& in, DType to, Tensor& out) {
  if (in.dtype == to) {
    out = in;
    return {};
  }
  Tensor result;
  PY_ORT_TRY(Tensor::make(to, in.dims, result));
  const Lane from_lane = lane_of(in.dtype), to_lane = lane_of(to);
  const bool direct = is_native(to);
  const void* data = in.storage->data();
  alignas(16) uint64_t wide[kChunk], converted[kChunk];
  const int64_t count = in.count();
  for (int64_t at = 0; at < count; at += kChunk) {
    const auto n = static_cast<size_t>(std::min<int64_t>(kChunk, count - at));
    void* target = direct ? result.mutable_data<char>() + static_cast<size_t>(at) * lane_size(to_lane) : nullptr;
    const void* x = widen(in.dtype, data, at, n, direct && from_lane == to_lane ? target : wide);
    if (to == DType::bool_ && from_lane != Lane::i32) {
      // Bool is "not 0" of the untruncated number.
      visit_lane(from_lane, [&]<class T>() {
        for (size_t i = 0; i < n; ++i) reinterpret_cast<int32_t*>(converted)[i] = static_cast<const T*>(x)[i] != 0;
      });
      x = converted;
    } else if (rounds_to(to) && (from_lane == Lane::f32 || from_lane == Lane::f64)) {
      // As in onnxruntime: to the nearest, halves away from 0; wider integers are truncated.
      visit_lane(from_lane, [&]<class T>() {
        if constexpr (std::is_floating_point_v<T>)
          for (size_t i = 0; i < n; ++i)
            reinterpret_cast<int32_t*>(converted)[i] =
                static_cast<int32_t>(static_cast<int64_t>(std::round(static_cast<const T*>(x)[i])));
      });
      x = converted;
    } else if (from_lane != to_lane) {
      convert_lane(from_lane, x, to_lane, direct ? target : converted, n);
      x = direct ? target : converted;
    }
    narrow(to, x, result.storage->data(), at, n);
  }
  out = std::move(result);
  return {};
}

}  // namespace py_ort
