// The functions that other kernels have within them, by their names.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// By name ("" and Identity: none) and numbers; what numbers leave out gets the operator's defaults.
// Names may differ in case.
Status make_activation(std::string_view name, const std::vector<float>& params, Activation& out);
// How many numbers the activation of this name takes.
int activation_params(std::string_view name);

}  // namespace py_ort
