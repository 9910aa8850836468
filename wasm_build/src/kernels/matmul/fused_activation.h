// The activation that Python's passes fuse into a node, as attributes.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// `activation` (an operator's name; "" or absent: none) with its numbers in `activation_params`, or in activation_alpha
// and activation_beta as in com.microsoft's FusedGemm; `activation_offset` is added to the result of all but
// Relu and Clip.
Status read_activation(const Attributes& attributes, Activation& out);
// By name and numbers; what numbers leave out gets the operator's defaults.
// Names may differ in case.
Status make_activation(std::string_view name, const std::vector<float>& params, Activation& out);
// How many numbers the activation of this name takes.
int activation_params(std::string_view name);

}  // namespace py_ort
