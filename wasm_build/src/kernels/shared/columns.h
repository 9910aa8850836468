// Columns (along the last axis) of wider tensors: nodes read or write a part of a tensor, so that Split, Slice and
// Concat need no copies. Python selects the columns by attributes (docs/internals.md, section 2).
#pragma once

#include "py_ort/kernel.h"

namespace py_ort {

struct ColumnAttributes {
  // [first, count] of input 0, and of a residual; empty: all columns.
  Dims x, residual;
  // [first, width] of output 0, which then is a tensor of that width; empty: all columns.
  Dims y;
  // The input that is the tensor to write into. Without it (-1), this node makes the tensor, and others write into it.
  int64_t into = -1;

  static ColumnAttributes of(const Attributes& attributes);
};

// Columns from `first` on, of rows of `pitch` elements.
struct Columns { int64_t first = 0, pitch = 0; };

// `wide`, reduced to these columns ([first, count]; empty: all), and their place in it.
Status seen_columns(const Tensor& wide, const Dims& columns, Tensor& seen, Columns& at);

// Output 0 of shape `dims`, or the tensor that contains it as columns. `over`: see KernelContext::output; only for a
// whole output.
Status column_output(KernelContext& context, DType dtype, const Dims& dims, const ColumnAttributes& columns, Tensor& y,
                     Columns& at, std::initializer_list<size_t> over = {});

}  // namespace py_ort
