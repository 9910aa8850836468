// Values: tensors with shape, dtype and device, sequences of them, and optionals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "py_ort/gen/types_generated.h"
#include "py_ort/status.h"

namespace py_ort {

using schema::gen::DType;
using schema::gen::Location;

using Dims = std::vector<int64_t>;

int64_t element_count(std::span<const int64_t> dims);  // INT64_MAX when it does not fit
// Bytes of `count` elements on the CPU, in ONNX's own layout: int4 and similar types are packed two (four) to a byte; a
// string counts 0. SIZE_MAX if the number does not fit.
size_t byte_size(DType dtype, int64_t count);
const char* dtype_name(DType dtype);

// float16, bfloat16 and the small floats are stored as their bits.
struct Float16 { uint16_t bits; };
struct BFloat16 { uint16_t bits; };

// dtype_of<float> == DType::float32; bool, Float16, BFloat16, std::string and the integers likewise.
template <class T> inline constexpr DType dtype_of = DType::undefined;
template <> inline constexpr DType dtype_of<float> = DType::float32;
template <> inline constexpr DType dtype_of<double> = DType::float64;
template <> inline constexpr DType dtype_of<Float16> = DType::float16;
template <> inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <> inline constexpr DType dtype_of<int8_t> = DType::int8;
template <> inline constexpr DType dtype_of<uint8_t> = DType::uint8;
template <> inline constexpr DType dtype_of<int16_t> = DType::int16;
template <> inline constexpr DType dtype_of<uint16_t> = DType::uint16;
template <> inline constexpr DType dtype_of<int32_t> = DType::int32;
template <> inline constexpr DType dtype_of<uint32_t> = DType::uint32;
template <> inline constexpr DType dtype_of<int64_t> = DType::int64;
template <> inline constexpr DType dtype_of<uint64_t> = DType::uint64;
template <> inline constexpr DType dtype_of<bool> = DType::bool_;
template <> inline constexpr DType dtype_of<std::string> = DType::string_;

// 64-byte aligned, with 16 extra bytes, so that SIMD kernels may read past the end; null when out of memory. Free with
// std::free.
void* allocate(size_t size);

struct Provider;

// The bytes of a tensor, shared by views of it: on the heap (64-byte aligned), borrowed from a place that lives longer,
// or in a device's memory, by the device's id.
class Storage {
 public:
  using Release = void (*)(const Provider& provider, uint32_t id);
  static std::shared_ptr<Storage> on_heap(size_t size);  // null when out of memory
  static std::shared_ptr<Storage> borrowed(void* data, size_t size);
  static std::shared_ptr<Storage> adopted(void* data, size_t size);  // from ort_malloc; freed with the storage
  static std::shared_ptr<Storage> of_strings(int64_t count);
  // `release` is called with the id when the last owner releases it; may be null.
  static std::shared_ptr<Storage> on_device(const Provider& provider, uint32_t id, size_t size, Release release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  uint32_t id() const { return id_; }
  // Null: the bytes are on the heap.
  const Provider* provider() const { return provider_; }
  std::vector<std::string>& strings() { return strings_; }
  // For weights: the bytes are the same in all runs, so a kernel may cache values derived from them
  // (src/kernels/shared/derived.h).
  void freeze() { constant_ = true; }
  bool constant() const { return constant_; }
  // True if the bytes belong to this storage and may change: not a weight's, and not borrowed.
  bool writable() const { return owned_ && !constant_; }

 private:
  Storage() = default;
  void* data_ = nullptr;
  size_t size_ = 0;
  bool constant_ = false;
  bool owned_ = false;  // data_ came from allocate()
  uint32_t id_ = 0;
  const Provider* provider_ = nullptr;
  Release release_ = nullptr;
  std::vector<std::string> strings_;
};

struct Tensor {
  DType dtype = DType::undefined;
  Dims dims;
  Location location = Location::none;  // none: only dtype and dims are known
  std::shared_ptr<Storage> storage;

  int64_t count() const { return element_count(dims); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t dim(int64_t axis) const { return dims[static_cast<size_t>(axis < 0 ? axis + rank() : axis)]; }
  size_t size_in_bytes() const { return byte_size(dtype, count()); }

  // For a CPU tensor. The caller has checked the dtype (the kernel's declaration does).
  template <class T> const T* data() const { return static_cast<const T*>(storage->data()); }
  template <class T> T* mutable_data() { return static_cast<T*>(storage->data()); }
  template <class T> std::span<const T> values() const { return {data<T>(), static_cast<size_t>(count())}; }
  const std::string* strings() const { return storage->strings().data(); }
  std::string* mutable_strings() { return storage->strings().data(); }

  // A new CPU tensor; strings get empty elements.
  static Status make(DType dtype, Dims dims, Tensor& out);
  // The same bytes under another shape with the same number of elements.
  Tensor reshaped(Dims other) const { return {dtype, std::move(other), location, storage}; }
};

struct Value {
  enum class Kind : uint8_t { none, tensor, sequence, optional };
  Kind kind = Kind::none;  // none: not computed yet, or an omitted optional
  Tensor tensor;
  std::shared_ptr<std::vector<Value>> items;  // sequence: its elements; optional: one element, or none
  DType element_dtype = DType::undefined;     // for a sequence that may be empty

  static Value of(Tensor t) {
    Value v;
    v.kind = Kind::tensor;
    v.tensor = std::move(t);
    return v;
  }
};

}  // namespace py_ort
