// float16 and bfloat16 to and from float32, four at a time: to_float and to_float16, lane by lane.
#pragma once

#include <cstddef>
#include <cstdint>

namespace py_ort {

void widen_float16(const uint16_t* from, float* to, size_t count);
void narrow_float16(const float* from, uint16_t* to, size_t count);
void narrow_bfloat16(const float* from, uint16_t* to, size_t count);

}  // namespace py_ort
