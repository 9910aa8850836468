// CRC-32 of the data from a model's file: JavaScript's own is 4 times slower until the browser optimizes it.
#include <array>
#include <cstring>

#include "py_ort/abi.h"

namespace {

constexpr uint32_t kPolynomial = 0xedb88320;
constexpr size_t kStep = 16;

using Table = std::array<uint32_t, 256>;

// Each byte's contribution to the sum, if 0 to 15 more bytes follow it.
std::array<Table, kStep> make_tables() {
  std::array<Table, kStep> tables;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? kPolynomial ^ value >> 1 : value >> 1;
    tables[0][byte] = value;
  }
  for (size_t i = 1; i < kStep; ++i)
    for (uint32_t byte = 0; byte < 256; ++byte)
      tables[i][byte] = tables[0][tables[i - 1][byte] & 0xff] ^ tables[i - 1][byte] >> 8;
  return tables;
}

uint32_t of_word(const std::array<Table, kStep>& tables, size_t following, uint32_t word) {
  return tables[following + 3][word & 0xff] ^ tables[following + 2][word >> 8 & 0xff] ^
         tables[following + 1][word >> 16 & 0xff] ^ tables[following][word >> 24];
}

}  // namespace

extern "C" {

uint32_t ort_crc32(uint32_t sum, const void* bytes, size_t size) {
  static const std::array<Table, kStep> tables = make_tables();
  const auto* at = static_cast<const uint8_t*>(bytes);
  for (; size >= kStep; at += kStep, size -= kStep) {
    uint32_t words[4];
    std::memcpy(words, at, kStep);
    sum = of_word(tables, 12, words[0] ^ sum) ^ of_word(tables, 8, words[1]) ^ of_word(tables, 4, words[2]) ^
          of_word(tables, 0, words[3]);
  }
  for (; size > 0; ++at, --size) sum = tables[0][(sum ^ *at) & 0xff] ^ sum >> 8;
  return sum;
}

}  // extern "C"
