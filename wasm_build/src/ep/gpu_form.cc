// Elements as they lie on the GPU: 64-bit integers and bool become 32-bit words there, all others stay as they are.
#include <limits>

#include "ep/slot.h"

namespace py_ort {
namespace {

// The word of each dtype that is not the same in both places: signed ones become i32, the others u32.
template <class T>
using Word = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;

template <class T>
Status widen(const Tensor& tensor, std::string_view name, Word<T>* out) {
  const T* in = tensor.data<T>();
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    using Limits = std::numeric_limits<Word<T>>;
    if (in[i] < static_cast<T>(Limits::min()) || in[i] > static_cast<T>(Limits::max()))
      return {ErrorCode::invalid_argument, to_text("element ", i, " of '", name, "' is ", in[i],
                                                   ", beyond the 32 bits that integers have on the GPU: "
                                                   "run this model on the CPU provider")};
    out[i] = static_cast<Word<T>>(in[i]);
  }
  return {};
}

Status widen_bool(const Tensor& tensor, uint32_t* out) {
  const uint8_t* in = tensor.data<uint8_t>();
  for (int64_t i = 0; i < tensor.count(); ++i) out[i] = in[i] != 0;
  return {};
}

template <class T>
void narrow(const Word<T>* in, int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
}

}  // namespace

bool has_gpu_form(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::float16:
    case DType::int64:
    case DType::uint64:
    case DType::int32:
    case DType::uint32:
    case DType::int16:
    case DType::uint16:
    case DType::int8:
    case DType::uint8:
    case DType::bool_:
    case DType::bfloat16: return true;
    default: return false;
  }
}

size_t gpu_element_size(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
    case DType::uint16: return 2;
    case DType::int8:
    case DType::uint8: return 1;
    default: return has_gpu_form(dtype) ? 4 : 0;
  }
}

bool same_on_gpu(DType dtype) { return dtype != DType::int64 && dtype != DType::uint64 && dtype != DType::bool_; }

Status widen_for_gpu(const Tensor& tensor, std::string_view name, void* out) {
  switch (tensor.dtype) {
    case DType::int64: return widen<int64_t>(tensor, name, static_cast<int32_t*>(out));
    case DType::uint64: return widen<uint64_t>(tensor, name, static_cast<uint32_t*>(out));
    case DType::bool_: return widen_bool(tensor, static_cast<uint32_t*>(out));
    default:
      return not_implemented("'", name, "' cannot be on the GPU: ", dtype_name(tensor.dtype), " has no form there");
  }
}

void narrow_from_gpu(const void* in, DType dtype, int64_t count, void* out) {
  const auto* i32 = static_cast<const int32_t*>(in);
  const auto* u32 = static_cast<const uint32_t*>(in);
  switch (dtype) {
    case DType::int64: return narrow(i32, count, static_cast<int64_t*>(out));
    case DType::uint64: return narrow(u32, count, static_cast<uint64_t*>(out));
    case DType::bool_: return narrow(u32, count, static_cast<bool*>(out));
    default: return;
  }
}

}  // namespace py_ort
