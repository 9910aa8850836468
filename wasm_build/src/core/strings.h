// String tensors as bytes, in the ABI's form: for each element its uint32 length, then UTF-8.
#pragma once

#include "py_ort/tensor.h"

namespace py_ort {

// Fills `tensor`, whose dims give the number of strings.
Status decode_strings(const void* data, size_t size, Tensor& tensor);
Status encode_strings(const Tensor& tensor, std::shared_ptr<Storage>& bytes);

}  // namespace py_ort
