// What a kernel makes of an input before it uses it (packed weights, say): kept from run to run when the input is a
// constant of the model.
#pragma once

#include <memory>
#include <utility>

#include "py_ort/tensor.h"

namespace py_ort {

template <class T>
class Derived {
 public:
  // `made` is what make(T&) made of `from`, now or earlier. Valid until the kernel returns. keep: whether all else that
  // it is made of is constant. A constant may have another shape in each run: Reshape gives the same storage.
  template <class Make>
  Status get(const Tensor& from, const T*& made, Make make, bool keep = true) const {
    if (source_.storage && source_.storage == from.storage && source_.dtype == from.dtype &&
        source_.dims == from.dims) {
      made = &value_;
      return {};
    }
    source_ = {};
    value_ = T{};
    PY_ORT_TRY(make(value_));
    made = &value_;
    if (keep && from.storage->constant()) source_ = from;  // held, so that no other storage gets its address
    return {};
  }

  // Whether an input that may be omitted is a constant.
  static bool constant(const Tensor* tensor) { return !tensor || tensor->storage->constant(); }

 private:
  mutable Tensor source_;
  mutable T value_{};
};

}  // namespace py_ort
