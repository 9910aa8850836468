// What is done to a product's values: the program of the attribute `epilogue` (program.h), which Python's passes write.
// Register 0 is the value with its bias, register 1 the residual: input 3, of the result's shape.
#pragma once

#include "kernels/shared/program.h"
#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// The form that micro-kernels have of a program: the residual added before or behind all else, one function, a number
// added to its result. False where it has none.
bool recognized(const std::vector<Instruction>& program, Epilogue& out, bool& residual);

class ProductEpilogue {
 public:
  static Status read(const KernelInfo& info, ProductEpilogue& out);

  // The residual, or null. For a result of shape `dims`.
  Status residual(const KernelContext& context, const Dims& dims, const Tensor*& z) const;
  // The same for one that is given, or not (null).
  Status residual(const Tensor* given, const Dims& dims, const Tensor*& z) const;
  const Epilogue& form() const { return form_; }
  bool empty() const { return form_.form == Epilogue::identity; }

 private:
  Epilogue form_;
  bool residual_ = false;
};

}  // namespace py_ort
