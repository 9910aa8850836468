// Programs of elementwise steps, as attributes contain them: instructions separated by semicolons. An instruction has a
// name, the registers it reads, and numbers after a # ("Mul 0 1;LeakyRelu 2 #0.1"). Registers are the kernel's values,
// then the instructions' results; the last one is the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "py_ort/status.h"

namespace py_ort {

struct Instruction {
  std::string op;
  std::vector<int> registers;
  std::vector<float> numbers;  // two at most
};

Status parse_program(std::string_view text, std::vector<Instruction>& out);

}  // namespace py_ort
