// Powers with one exponent for all elements.
#pragma once

#include <cstdint>

namespace py_ort {

// y[i] = x[i]^exponent; `y` may be `x`.
void powers(const float* x, float exponent, float* y, int64_t count);

}  // namespace py_ort
