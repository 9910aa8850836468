// Arithmetic uses only five types, the lanes; elements of any other dtype are widened to their lane and narrowed again.
// A kernel thus needs five loops instead of twenty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "py_ort/tensor.h"

namespace py_ort {

// f32: float32, float16, bfloat16 and the small floats; i32: int32, the 8 and 16-bit integers, bool and the sub-byte
// integers; i64: int64, uint32.
enum class Lane : uint8_t { f32, f64, i32, i64, u64 };
inline constexpr size_t kLanes = 5;
inline constexpr size_t kChunk = 512;  // elements widened at a time

Lane lane_of(DType dtype);
DType lane_dtype(Lane lane);
inline size_t lane_size(Lane lane) { return lane == Lane::f32 || lane == Lane::i32 ? 4 : 8; }
// True if elements of `dtype` need no widening.
inline bool is_native(DType dtype) { return lane_dtype(lane_of(dtype)) == dtype; }

// Elements [offset, offset + count) of `data` in their lane: in place if native, otherwise in `scratch`. Offsets into
// sub-byte data must be even (multiples of 4 for 2 bits).
const void* widen(DType dtype, const void* data, int64_t offset, size_t count, void* scratch);
// The reverse. Integers wrap, floats round to nearest even; bool is "not 0"; small floats saturate.
void narrow(DType dtype, const void* wide, void* data, int64_t offset, size_t count);
// Between lanes: floats to integers by truncation, integers by wrapping.
void convert_lane(Lane from, const void* in, Lane to, void* out, size_t count);

// Casts whole tensors, from any numeric dtype to any other, like Cast. The result is `in` itself if nothing changes.
Status cast(const Tensor& in, DType to, Tensor& out);
inline Status widened(const Tensor& in, Tensor& out) { return cast(in, lane_dtype(lane_of(in.dtype)), out); }

// Calls f.operator()<T>() with the lane's C++ type.
template <class F>
decltype(auto) visit_lane(Lane lane, F&& f) {
  switch (lane) {
    case Lane::f32: return f.template operator()<float>();
    case Lane::f64: return f.template operator()<double>();
    case Lane::i32: return f.template operator()<int32_t>();
    case Lane::i64: return f.template operator()<int64_t>();
    case Lane::u64: break;
  }
  return f.template operator()<uint64_t>();
}

}  // namespace py_ort
