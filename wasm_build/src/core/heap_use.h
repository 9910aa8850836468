// How much of the heap tensors hold.
#pragma once

#include <cstddef>

namespace py_ort {

struct HeapUse { size_t now = 0, peak = 0; };

// `reset`: from here on the peak counts anew.
HeapUse heap_use(bool reset);

}  // namespace py_ort
