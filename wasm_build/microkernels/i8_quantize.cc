// Floats to 8 bits.
#include "kernels/quantization/dynamic_range.h"
#include "microkernels/target.h"
#include "py_ort/integer_products.h"

namespace py_ort {

PY_ORT_MICROKERNEL(i8_quantize_16)(const void* arguments, void*, int32_t begin, int32_t end) {
  const I8Quantize& q = *static_cast<const I8Quantize*>(arguments);
  const int64_t first = static_cast<int64_t>(begin) * I8Quantize::kBlock;
  const int64_t behind = static_cast<int64_t>(end) * I8Quantize::kBlock;
  const int64_t count = (behind < q.count ? behind : q.count) - first;
  quantize_bytes(q.x + first, count, q.scale, q.zero, q.is_signed, static_cast<uint8_t*>(q.y) + first);
}

}  // namespace py_ort
