// Numbers as text and text as numbers, each rounded correctly. The C library's printf and strtod know more, and would
// be 20 kB of every download: they compute with 128 bits, which WebAssembly has not.
#pragma once

#include <string>
#include <string_view>

namespace py_ort {

// As printf's %.*g has it.
std::string to_text(double value, int digits);

// The number at the beginning of `text`, as strtod and strtof read it: with space before, a sign, decimal or
// hexadecimal, "inf" and "nan". used: its bytes; 0: there is none.
double to_double(std::string_view text, size_t& used);
float to_float(std::string_view text, size_t& used);

}  // namespace py_ort
