// A value that a kernel derives from an input (packed weights, for example): cached between runs if the input is a
// constant of the model.
#pragma once

#include <memory>
#include <utility>

#include "py_ort/tensor.h"

namespace py_ort {

template <class T>
class Derived {
 public:
  // Sets `made` to the result of make(T&) for `from`, made now or earlier. Valid until the kernel returns. keep: true
  // if all other inputs of `make` are constant. A constant may have another shape in each run: Reshape keeps the
  // storage.
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
    if (keep && from.storage->constant()) source_ = from;  // held, so that no other storage gets the same address
    return {};
  }

  // True if an input that may be omitted is a constant or missing.
  static bool constant(const Tensor* tensor) { return !tensor || tensor->storage->constant(); }

 private:
  mutable Tensor source_;
  mutable T value_{};
};

}  // namespace py_ort
