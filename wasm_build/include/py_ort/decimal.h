// Numbers to text and text to numbers, rounded correctly. The C library's printf and strtod would add 20 kB to every
// download: they compute with 128 bits, which WebAssembly lacks.
#pragma once

#include <string>
#include <string_view>

namespace py_ort {

// Formats like printf's %.*g.
std::string to_text(double value, int digits);

// Parses the number at the beginning of `text` like strtod and strtof: with leading space, a sign, decimal or
// hexadecimal, "inf" and "nan". used: the number's bytes; 0 if there is none.
double to_double(std::string_view text, size_t& used);
float to_float(std::string_view text, size_t& used);

}  // namespace py_ort
