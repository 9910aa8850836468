// A total order of elements for sorting: NaN is the largest number.
#pragma once

#include <string>
#include <type_traits>

namespace py_ort {

template <class T>
bool comes_before(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (b != b && a == a);
  else return a < b;
}

}  // namespace py_ort
