// How elements get the form in which a device keeps them, and back.
#pragma once

#include "plan/provider.h"

namespace py_ort {

// Whether there is a way between the two: none is needed where they are the same, whole bytes in size.
bool is_known_form(DType dtype, DType stored);
// For dtypes that have another form there. Integers that do not fit are an error; `name` is for it.
Status to_form(const Tensor& tensor, std::string_view name, const Provider& provider, void* out);
void from_form(const void* in, DType dtype, int64_t count, void* out);

}  // namespace py_ort
