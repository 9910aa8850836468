#include "core/strings.h"

#include <cstring>

namespace py_ort {
namespace {
constexpr size_t kLength = sizeof(uint32_t);
}

Status decode_strings(const void* data, size_t size, Tensor& tensor) {
  const Dims dims = tensor.dims;
  // Every element has a length: a shape with more elements is refused before memory is allocated for them.
  if (static_cast<uint64_t>(element_count(dims)) > size / kLength)
    return invalid_argument("the strings of a tensor of shape ", dims, " are cut short (", size, " bytes)");
  PY_ORT_TRY(Tensor::make(DType::string_, dims, tensor));
  const auto* bytes = static_cast<const char*>(data);
  size_t at = 0;
  for (int64_t i = 0, count = tensor.count(); i < count; ++i) {
    uint32_t length = 0;
    if (size - at < kLength) return invalid_argument("string ", i, " of a tensor of shape ", dims, " is cut short");
    std::memcpy(&length, bytes + at, kLength);
    at += kLength;
    if (size - at < length) return invalid_argument("string ", i, " of a tensor of shape ", dims, " is cut short");
    tensor.mutable_strings()[i].assign(bytes + at, length);
    at += length;
  }
  return at == size ? Status{}
                    : invalid_argument("a tensor of shape ", dims, " has ", size - at, " bytes after its last string");
}

Status encode_strings(const Tensor& tensor, std::shared_ptr<Storage>& bytes) {
  size_t size = 0;
  for (int64_t i = 0, count = tensor.count(); i < count; ++i) size += kLength + tensor.strings()[i].size();
  bytes = Storage::on_heap(size);
  if (!bytes) return out_of_memory("no memory for ", size, " bytes of strings");
  auto* out = static_cast<char*>(bytes->data());
  for (int64_t i = 0, count = tensor.count(); i < count; ++i) {
    const std::string& text = tensor.strings()[i];
    const auto length = static_cast<uint32_t>(text.size());
    std::memcpy(out, &length, kLength);
    std::memcpy(out + kLength, text.data(), length);
    out += kLength + length;
  }
  return {};
}

}  // namespace py_ort
