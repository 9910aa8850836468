// Programs of elementwise steps, as attributes have them: an instruction for each, separated by semicolons: a name, the
// registers it reads, and numbers with a # in front ("Mul 0 1;LeakyRelu 2 #0.1"). Registers are what the kernel gives,
// then the instructions' results, the last of which is the program's.
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
