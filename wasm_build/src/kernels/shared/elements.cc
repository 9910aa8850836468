#include "kernels/shared/elements.h"

#include <algorithm>
#include <cstring>

#include "kernels/shared/lanes.h"

namespace py_ort {

void copy_elements(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t count) {
  if (from.dtype == DType::string_) {
    std::copy_n(from.strings() + from_at, count, to.mutable_strings() + to_at);
    return;
  }
  const size_t width = byte_size(from.dtype, 1);
  std::memcpy(to.mutable_data<char>() + static_cast<size_t>(to_at) * width,
              from.data<char>() + static_cast<size_t>(from_at) * width, static_cast<size_t>(count) * width);
}

void fill_elements(Tensor& to, const Tensor& from, int64_t from_at) {
  visit_width(to.dtype,
              [&]<class T>() { std::fill_n(mutable_elements<T>(to), to.count(), elements<T>(from)[from_at]); });
}

void fill_zero(Tensor& to) {
  if (to.dtype != DType::string_) std::memset(to.storage->data(), 0, to.size_in_bytes());
}

namespace {
// Copies need no signs: any unsigned type of the same size is fine.
DType unsigned_of(DType dtype) { return dtype == DType::int2 || dtype == DType::uint2 ? DType::uint2 : DType::uint4; }
}  // namespace

Status spread_bytes(const Tensor& packed, Tensor& out) {
  Tensor bits = packed;
  bits.dtype = unsigned_of(packed.dtype);
  return cast(bits, DType::uint8, out);
}

Status gather_bits(const Tensor& bytes, DType dtype, Tensor& out) {
  PY_ORT_TRY(cast(bytes, unsigned_of(dtype), out));
  out.dtype = dtype;
  return {};
}

}  // namespace py_ort
