// The steps applied to a product's values: the program of the attribute `epilogue` (program.h), which Python's passes
// write. Register 0 is the value with its bias, register 1 the residual: input 3, of the result's shape.
#pragma once

#include "kernels/shared/program.h"
#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// Converts a program to the micro-kernels' form: the residual added first or last, one function, a number added to its
// result. Returns false if this form cannot express it.
bool recognized(const std::vector<Instruction>& program, Epilogue& out, bool& residual);

class ProductEpilogue {
 public:
  static Status read(const KernelInfo& info, ProductEpilogue& out);

  // The residual, or null. For a result of shape `dims`.
  Status residual(const KernelContext& context, const Dims& dims, const Tensor*& z) const;
  // The same for a given residual, or null.
  Status residual(const Tensor* given, const Dims& dims, const Tensor*& z) const;
  const Epilogue& form() const { return form_; }
  bool empty() const { return form_.form == Epilogue::identity; }

 private:
  Epilogue form_;
  bool residual_ = false;
};

}  // namespace py_ort
