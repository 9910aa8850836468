// String tensors as bytes, as they pass the ABI: for each element its uint32 length, then UTF-8.
#pragma once

#include "py_ort/tensor.h"

namespace py_ort {

// Fills `tensor`, whose dims say how many there are.
Status decode_strings(const void* data, size_t size, Tensor& tensor);
Status encode_strings(const Tensor& tensor, std::shared_ptr<Storage>& bytes);

}  // namespace py_ort
