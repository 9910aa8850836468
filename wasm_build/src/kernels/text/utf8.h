// Code points of UTF-8 text. Invalid bytes are one code point each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace py_ort {

// Reads one code point and advances `at`.
inline uint32_t next_code_point(std::string_view text, size_t& at) {
  const auto lead = static_cast<uint8_t>(text[at++]);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  if (more == 0 || at + static_cast<size_t>(more) > text.size()) return lead;
  uint32_t code = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i) code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3f);
  return code;
}

inline void append_code_point(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code >= 0x10000 ? 3 : code >= 0x800 ? 2 : 1;
  text += static_cast<char>((0xf0 << (3 - more) & 0xff) | code >> (6 * more));
  for (int i = more; i-- > 0;) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

}  // namespace py_ort
