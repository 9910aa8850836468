// Reading axes, indices and other small integers from inputs and attributes.
#pragma once

#include "py_ort/kernel.h"

namespace py_ort {

// The elements of a tensor of integers, bools or floats (truncated).
Status read_integers(const Tensor& tensor, std::vector<int64_t>& out);
// The same for an input; a missing input is an error.
Status read_integers(const Tensor* tensor, std::vector<int64_t>& out);
// The only element of such a tensor. `what` names it in the message.
Status read_integer(const Tensor& tensor, std::string_view what, int64_t& out);

// -1 is the last axis.
Status normalize_axis(int64_t axis, int64_t rank, int64_t& out);
Status normalize_axes(std::vector<int64_t>& axes, int64_t rank);
// The same for a list of distinct axes.
Status distinct_axes(std::vector<int64_t>& axes, int64_t rank);
// Negative indices count from the end of the axis; others outside [0, size) are errors that name the value.
Status normalize_indices(std::vector<int64_t>& indices, int64_t size, std::string_view what);

// The product of dims[first..last).
int64_t count_between(const Dims& dims, int64_t first, int64_t last);

}  // namespace py_ort
