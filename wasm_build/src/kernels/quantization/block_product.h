// Products with weights of few bits in blocks, for MatMulNBits and mixtures of experts.
#pragma once

#include "py_ort/microkernels.h"
#include "py_ort/status.h"

namespace py_ort {

// Prepares the rows of A if the form needs it, and multiplies.
Status multiply_blocks(BlockProduct product);

}  // namespace py_ort
