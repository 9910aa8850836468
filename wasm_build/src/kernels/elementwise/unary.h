// Elementwise functions of one float: a table of them, applied to any float dtype. Micro-kernels compute most of them.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// The attributes that a function reads (alpha and beta, or their other names).
struct UnaryParams { float a = 0, b = 0; };

struct UnaryFunction {
  std::string_view name;
  const char* a_name;
  float a;
  const char* b_name;
  float b;
  Activation::Kind kind;  // of the micro-kernel f32_map; none: it lacks the function
  // a function that f32_map lacks; null: through f64
  void (*f32)(const float* x, float* y, size_t count, UnaryParams params);
  double (*f64)(double x, double a, double b);
};

// Null for an unknown name. Names are those of py_ort/schema/scalar_functions.py.
const UnaryFunction* find_unary(std::string_view name);
UnaryParams unary_params(const UnaryFunction& function, const Attributes& attributes);
// `y` may be `x`.
void apply_unary(const UnaryFunction& function, UnaryParams params, const float* x, float* y, size_t count);
// `out` has the dtype (a float) and the number of elements of `in`; it may be `in`.
void apply_unary(const UnaryFunction& function, UnaryParams params, const Tensor& in, Tensor& out);

}  // namespace py_ort
