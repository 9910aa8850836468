// The functions that AddressSanitizer's code calls, for micro-kernels in the build that checks accesses to tensors
// (PY_ORT_BOUNDS). An access past a tensor traps, and the stack names the kernel. The core has AddressSanitizer's own
// library.
#include <stddef.h>
#include <stdint.h>

namespace {
// Each byte of the shadow describes eight: 0 allows all of them, 1 to 7 the first ones, a negative one none.
void hold(uintptr_t begin, size_t size) {
  if (size == 0) return;
  const uintptr_t last = begin + size - 1;
  for (uintptr_t eighth = begin >> 3; eighth <= last >> 3; ++eighth) {
    const int8_t valid = *reinterpret_cast<const int8_t*>(eighth);
    const auto wanted = static_cast<int8_t>(eighth == last >> 3 ? (last & 7) + 1 : 8);
    if (valid != 0 && valid < wanted) __builtin_trap();
  }
}
}  // namespace

extern "C" {
#define PY_ORT_REPORTS(kind)                                     \
  void __asan_report_##kind##1(uintptr_t) { __builtin_trap(); }  \
  void __asan_report_##kind##2(uintptr_t) { __builtin_trap(); }  \
  void __asan_report_##kind##4(uintptr_t) { __builtin_trap(); }  \
  void __asan_report_##kind##8(uintptr_t) { __builtin_trap(); }  \
  void __asan_report_##kind##16(uintptr_t) { __builtin_trap(); } \
  void __asan_report_##kind##_n(uintptr_t, size_t) { __builtin_trap(); }
PY_ORT_REPORTS(load)
PY_ORT_REPORTS(store)

void __asan_handle_no_return() {}

void* __asan_memset(void* to, int value, size_t size) {
  hold(reinterpret_cast<uintptr_t>(to), size);
  return __builtin_memset(to, value, size);
}

void* __asan_memcpy(void* to, const void* from, size_t size) {
  hold(reinterpret_cast<uintptr_t>(to), size);
  hold(reinterpret_cast<uintptr_t>(from), size);
  return __builtin_memcpy(to, from, size);
}

void* __asan_memmove(void* to, const void* from, size_t size) {
  hold(reinterpret_cast<uintptr_t>(to), size);
  hold(reinterpret_cast<uintptr_t>(from), size);
  return __builtin_memmove(to, from, size);
}
}
