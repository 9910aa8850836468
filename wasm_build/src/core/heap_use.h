// The bytes that tensors hold on the heap.
#pragma once

#include <cstddef>

namespace py_ort {

struct HeapUse { size_t now = 0, peak = 0; };

// `reset`: begin a new peak.
HeapUse heap_use(bool reset);

}  // namespace py_ort
