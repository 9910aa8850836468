// Columns (along the last axis) of wider tensors: nodes that read some of one, or write some of one, so that Split,
// Slice and Concat need no copies. Python says which by attributes (docs/internals.md, section 2).
#pragma once

#include "py_ort/kernel.h"

namespace py_ort {

struct ColumnAttributes {
  // [first, count] of input 0, and of a residual; empty: all.
  Dims x, residual;
  // [first, width] of output 0, which is a tensor of that width then; empty: all of it.
  Dims y;
  // The input that is the tensor to write into; without it (-1), others will write into the one that is made here.
  int64_t into = -1;

  static ColumnAttributes of(const Attributes& attributes);
};

// Columns from `first` on, of rows of `pitch` elements.
struct Columns { int64_t first = 0, pitch = 0; };

// `wide`, as if it had these columns only ([first, count]; empty: all), and where they are in it.
Status seen_columns(const Tensor& wide, const Dims& columns, Tensor& seen, Columns& at);

// Output 0 of shape `dims`, or the tensor that it is columns of. `over`: see KernelContext::output, where it is all.
Status column_output(KernelContext& context, DType dtype, const Dims& dims, const ColumnAttributes& columns, Tensor& y,
                     Columns& at, std::initializer_list<size_t> over = {});

}  // namespace py_ort
