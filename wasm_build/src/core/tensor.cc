#include "py_ort/tensor.h"

#include "core/heap_use.h"
#include "core/reserve.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace py_ort {

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool too_many = false;
  for (int64_t d : dims) {
    if (d == 0) return 0;
    too_many |= __builtin_mul_overflow(count, d, &count);
  }
  return too_many ? INT64_MAX : count;
}

namespace {
int bits_of(DType dtype) {
  switch (dtype) {
    case DType::undefined:
    case DType::string_: return 0;
    case DType::uint2:
    case DType::int2: return 2;
    case DType::uint4:
    case DType::int4:
    case DType::float4e2m1: return 4;
    case DType::uint8:
    case DType::int8:
    case DType::bool_:
    case DType::float8e4m3fn:
    case DType::float8e4m3fnuz:
    case DType::float8e5m2:
    case DType::float8e5m2fnuz:
    case DType::float8e8m0: return 8;
    case DType::uint16:
    case DType::int16:
    case DType::float16:
    case DType::bfloat16: return 16;
    case DType::float32:
    case DType::int32:
    case DType::uint32: return 32;
    case DType::float64:
    case DType::int64:
    case DType::uint64:
    case DType::complex64: return 64;
    case DType::complex128: return 128;
  }
  return 0;
}
}  // namespace

size_t byte_size(DType dtype, int64_t count) {
  const auto bits = static_cast<uint64_t>(bits_of(dtype)), elements = static_cast<uint64_t>(count);
  if (bits > 0 && elements > (uint64_t{1} << 56)) return SIZE_MAX;
  const uint64_t bytes = elements / 8 * bits + (elements % 8 * bits + 7) / 8;
  return bytes > SIZE_MAX ? SIZE_MAX : static_cast<size_t>(bytes);
}

const char* dtype_name(DType dtype) {
  const char* name = schema::gen::EnumNameDType(dtype);
  return dtype == DType::string_ ? "string" : dtype == DType::bool_ ? "bool" : name;
}

void* allocate(size_t size) {
  if (size > SIZE_MAX - 128 || !hold_reserve()) return nullptr;
#if __has_feature(address_sanitizer)
  // Filled with invalid numbers, so that reads before a write, or past the end, are visible in results.
  void* data = nullptr;
  return posix_memalign(&data, 64, size + 16) == 0 ? std::memset(data, 0xff, size + 16) : nullptr;
#else
  return std::aligned_alloc(64, (size + 16 + 63) / 64 * 64);
#endif
}

namespace {
HeapUse use;
}  // namespace

HeapUse heap_use(bool reset) {
  const HeapUse answer = use;
  if (reset) use.peak = use.now;
  return answer;
}

std::shared_ptr<Storage> Storage::on_heap(size_t size) {
  void* data = allocate(size);
  return data ? adopted(data, size) : nullptr;
}

std::shared_ptr<Storage> Storage::adopted(void* data, size_t size) {
  auto storage = borrowed(data, size);
  storage->owned_ = true;
  use.now += size;
  use.peak = std::max(use.peak, use.now);
  return storage;
}

std::shared_ptr<Storage> Storage::borrowed(void* data, size_t size) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->size_ = size;
  return storage;
}

std::shared_ptr<Storage> Storage::of_strings(int64_t count) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->strings_.resize(static_cast<size_t>(count));
  return storage;
}

std::shared_ptr<Storage> Storage::on_device(const Provider& provider, uint32_t id, size_t size, Release release) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->provider_ = &provider;
  storage->id_ = id;
  storage->size_ = size;
  storage->release_ = release;
  return storage;
}

Storage::~Storage() {
  if (owned_) {
    std::free(data_);
    use.now -= size_;
  }
  if (release_) release_(*provider_, id_);
}

Status Tensor::make(DType dtype, Dims dims, Tensor& out) {
  for (int64_t d : dims)
    if (d < 0) return runtime_error("a tensor cannot have the shape ", dims);
  const int64_t count = element_count(dims);
  auto storage = dtype == DType::string_ ? Storage::of_strings(count) : Storage::on_heap(byte_size(dtype, count));
  if (!storage)
    return out_of_memory("no memory for a ", dtype_name(dtype), " tensor of shape ", dims, " (",
                         byte_size(dtype, count), " bytes)");
  out = {dtype, std::move(dims), Location::cpu, std::move(storage)};
  return {};
}

}  // namespace py_ort
