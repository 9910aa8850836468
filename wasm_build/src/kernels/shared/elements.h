// Copies elements without knowing their dtype: one implementation per width, plus one for strings. Sub-byte types are
// copied as bytes.
#pragma once

#include <optional>
#include <string>

#include "py_ort/kernel.h"

namespace py_ort {

struct Bytes16 { uint64_t low, high; };  // complex128

// Calls f.operator()<T>() with an unsigned integer as wide as the elements, with Bytes16, or with std::string.
template <class F>
decltype(auto) visit_width(DType dtype, F&& f) {
  if (dtype == DType::string_) return f.template operator()<std::string>();
  switch (byte_size(dtype, 1)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Bytes16>();
  }
}

template <class T>
const T* elements(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::string>) return tensor.strings();
  else return tensor.data<T>();
}
template <class T>
T* mutable_elements(Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::string>) return tensor.mutable_strings();
  else return tensor.mutable_data<T>();
}

// Copies `count` contiguous elements.
void copy_elements(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t count);
// Sets all elements of `to` to element `from_at` of `from`.
void fill_elements(Tensor& to, const Tensor& from, int64_t from_at);
void fill_zero(Tensor& to);  // "" in a string tensor

// True if elements are smaller than a byte.
inline bool is_sub_byte(DType dtype) {
  return dtype >= DType::uint4 && dtype != DType::float8e8m0 && dtype != DType::undefined;
}
// To one byte per element (dtype uint8, with the same bits), and back.
Status spread_bytes(const Tensor& packed, Tensor& out);
Status gather_bits(const Tensor& bytes, DType dtype, Tensor& out);

// Lets a data movement kernel K handle sub-byte tensors: those of input 0's dtype are spread to bytes before, and
// packed after.
template <class K>
class OnBytes {
 public:
  static Status make(const KernelInfo& info, OnBytes& out) {
    if constexpr (requires(K k) {
                    { K::make(info, k) } -> std::same_as<Status>;
                  }) {
      out.kernel_.emplace();
      return K::make(info, *out.kernel_);
    } else if constexpr (std::is_constructible_v<K, const KernelInfo&>) {
      out.kernel_.emplace(info);
      return {};
    } else {
      out.kernel_.emplace();
      return {};
    }
  }
  Status operator()(KernelContext& context) const {
    const Tensor* first = context.input(0);
    if (!first || !is_sub_byte(first->dtype)) return (*kernel_)(context);
    const DType dtype = first->dtype;
    std::vector<Value> inputs(context.input_count()), outputs(context.output_count());
    std::vector<const Value*> input_pointers(inputs.size());
    std::vector<Value*> output_pointers(outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* value = context.input_value(i);
      input_pointers[i] = value;
      if (!value || value->tensor.dtype != dtype) continue;
      Tensor bytes;
      PY_ORT_TRY(spread_bytes(value->tensor, bytes));
      inputs[i] = Value::of(std::move(bytes));
      input_pointers[i] = &inputs[i];
    }
    for (size_t i = 0; i < outputs.size(); ++i) output_pointers[i] = context.wants(i) ? &outputs[i] : nullptr;
    KernelContext inner(input_pointers, output_pointers);
    PY_ORT_TRY((*kernel_)(inner));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!context.wants(i)) continue;
      if (outputs[i].tensor.dtype != DType::uint8) {
        context.output_value(i, std::move(outputs[i]));
        continue;
      }
      Tensor packed;
      PY_ORT_TRY(gather_bits(outputs[i].tensor, dtype, packed));
      context.output(i, std::move(packed));
    }
    return {};
  }

 private:
  std::optional<K> kernel_;
};

}  // namespace py_ort
