// The functions inside other kernels, by their names.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

// By name ("" and Identity: none) and numbers; missing numbers are the operator's defaults. Names may differ in case.
Status make_activation(std::string_view name, const std::vector<float>& params, Activation& out);
// The number of parameters of the activation with this name.
int activation_params(std::string_view name);

}  // namespace py_ort
