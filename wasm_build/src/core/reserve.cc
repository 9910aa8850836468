#include "core/reserve.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "core/running_kernel.h"

namespace py_ort {
namespace {

constexpr size_t kReserve = size_t{32} << 10;
void* reserve = nullptr;

void give_up_reserve() {
  if (node_at_work || !reserve) throw std::bad_alloc();
  std::free(std::exchange(reserve, nullptr));
}

}  // namespace

bool hold_reserve() {
  if (reserve) return true;
  std::set_new_handler(give_up_reserve);
  reserve = std::malloc(kReserve);
  return reserve;
}

}  // namespace py_ort
