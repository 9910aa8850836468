// Conversion of elements that have another form on a device than on the heap: 64-bit integers and bool as 32-bit words.
#include <limits>

#include "plan/element_forms.h"

namespace py_ort {
namespace {

// The word of each dtype that differs between both places: signed ones become i32, the others u32.
template <class T>
using Word = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;

template <class T>
Status to_words(const Tensor& tensor, std::string_view name, const Provider& provider, Word<T>* out) {
  const T* in = tensor.data<T>();
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    using Limits = std::numeric_limits<Word<T>>;
    if (in[i] < static_cast<T>(Limits::min()) || in[i] > static_cast<T>(Limits::max()))
      return {ErrorCode::invalid_argument,
              to_text("element ", i, " of '", name, "' is ", in[i], ", beyond the 32 bits that integers have on ",
                      provider.name, ": run this model on the CPU provider")};
    out[i] = static_cast<Word<T>>(in[i]);
  }
  return {};
}

Status bool_to_words(const Tensor& tensor, uint32_t* out) {
  const uint8_t* in = tensor.data<uint8_t>();
  for (int64_t i = 0; i < tensor.count(); ++i) out[i] = in[i] != 0;
  return {};
}

template <class T>
void from_words(const Word<T>* in, int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
}

}  // namespace

bool is_known_form(DType dtype, DType stored) {
  if (dtype == stored) return byte_size(dtype, 1) > 0 && byte_size(dtype, 2) == 2 * byte_size(dtype, 1);
  return dtype == DType::int64 ? stored == DType::int32
                               : (dtype == DType::uint64 || dtype == DType::bool_) && stored == DType::uint32;
}

Status to_form(const Tensor& tensor, std::string_view name, const Provider& provider, void* out) {
  if (tensor.dtype == DType::int64) return to_words<int64_t>(tensor, name, provider, static_cast<int32_t*>(out));
  if (tensor.dtype == DType::uint64) return to_words<uint64_t>(tensor, name, provider, static_cast<uint32_t*>(out));
  return bool_to_words(tensor, static_cast<uint32_t*>(out));
}

void from_form(const void* in, DType dtype, int64_t count, void* out) {
  const auto* u32 = static_cast<const uint32_t*>(in);
  if (dtype == DType::int64) return from_words(static_cast<const int32_t*>(in), count, static_cast<int64_t*>(out));
  if (dtype == DType::uint64) return from_words(u32, count, static_cast<uint64_t*>(out));
  from_words(u32, count, static_cast<bool*>(out));
}

}  // namespace py_ort
