// The residual that Python's passes fuse into a matrix product: its fourth input, of the result's shape.
#pragma once

#include "kernels/matmul/product.h"
#include "py_ort/kernel.h"

namespace py_ort {

class Residual {
 public:
  void read(const Attributes& attributes) { last_ = attributes.integer("residual_last", 0) != 0; }

  static const Tensor* of(const KernelContext& context) { return context.input(3); }
  static Status check(const Tensor* z, const Dims& result) {
    PY_ORT_ENSURE(!z || z->dims == result, "the residual of shape ", z->dims,
                  " is not shaped like the result: ", result);
    return {};
  }
  // Whether the result may lie in the residual's place, where the product goes through panels: then each element of
  // that is read just before its sum is written.
  bool may_hold_result(const Tensor* z) const { return z && !last_; }
  // What is added before the activation.
  void before(const Tensor* z, int64_t stride, ProductEnd& end) const {
    if (!z || last_) return;
    end.z = z->data<float>();
    end.z_stride = stride;
  }
  // What is added behind it.
  void behind(const Tensor* z, Tensor& y) const {
    if (!z || !last_) return;
    const float* more = z->data<float>();
    float* to = y.mutable_data<float>();
    for (int64_t i = 0, count = y.count(); i < count; ++i) to[i] += more[i];
  }

 private:
  bool last_ = false;
};

}  // namespace py_ort
