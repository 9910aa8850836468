// Converts elements to their form on a device, and back.
#pragma once

#include "plan/provider.h"

namespace py_ort {

// True if there is a conversion between the two. Equal forms, whole bytes in size, need none.
bool is_known_form(DType dtype, DType stored);
// For dtypes with another form there. Integers that do not fit are an error, which uses `name`.
Status to_form(const Tensor& tensor, std::string_view name, const Provider& provider, void* out);
void from_form(const void* in, DType dtype, int64_t count, void* out);

}  // namespace py_ort
