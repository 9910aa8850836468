#include "py_ort/decimal.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace py_ort {
namespace {

// More digits than there are between two neighbours of float64. Of further digits only their presence matters.
constexpr size_t kMostDigits = 800;
constexpr int kMostBits = 59;  // in one shift: ten times as much fits into 64 bits

// 0.d0d1d2... times ten to the power of `point`, without zeros at either end.
struct Decimal {
  std::vector<uint8_t> digits;
  int point = 0;
  bool more = false;  // nonzero digits follow

  void push(uint8_t digit) {
    if (digits.size() < kMostDigits) digits.push_back(digit);
    else more |= digit != 0;
  }
  void trim() {
    while (!digits.empty() && digits.back() == 0) digits.pop_back();
    const auto first = std::find_if(digits.begin(), digits.end(), [](uint8_t digit) { return digit != 0; });
    point -= static_cast<int>(first - digits.begin());
    digits.erase(digits.begin(), first);
  }
  void multiply(int bits) {  // by two to that power
    uint64_t carry = 0;
    for (size_t i = digits.size(); i-- > 0; carry /= 10) {
      carry += static_cast<uint64_t>(digits[i]) << bits;
      digits[i] = static_cast<uint8_t>(carry % 10);
    }
    for (; carry > 0; carry /= 10, ++point) digits.insert(digits.begin(), static_cast<uint8_t>(carry % 10));
    if (digits.size() > kMostDigits) {
      more |= std::any_of(digits.begin() + kMostDigits, digits.end(), [](uint8_t digit) { return digit != 0; });
      digits.resize(kMostDigits);
    }
    trim();
  }
  void divide(int bits) {
    const std::vector<uint8_t> from = std::move(digits);
    digits.clear();
    uint64_t rest = 0;
    for (size_t i = 0; i < from.size() || rest > 0; ++i) {
      rest = rest * 10 + (i < from.size() ? from[i] : 0);
      push(static_cast<uint8_t>(rest >> bits));
      rest &= (uint64_t{1} << bits) - 1;
    }
    trim();
  }
  void scale(int bits) {
    for (; bits > 0; bits -= std::min(bits, kMostBits)) multiply(std::min(bits, kMostBits));
    for (; bits < 0; bits += std::min(-bits, kMostBits)) divide(std::min(-bits, kMostBits));
  }
  uint8_t digit(int i) const { return i >= 0 && i < static_cast<int>(digits.size()) ? digits[i] : 0; }
  // True if the digits after the first `count` round the last of these up: to the nearest, ties to even.
  bool rounds_up(int count, bool odd) const {
    const int next = digit(count);
    return next > 5 || (next == 5 && (odd || more || static_cast<int>(digits.size()) > count + 1));
  }
};

// For float64 or float32: the bits of its mantissa, and the exponent of its smallest number.
struct Format { int bits, least; };

double rounded(Decimal decimal, Format format) {
  if (decimal.digits.empty() || decimal.point < -400) return 0;
  if (decimal.point > 400) return std::numeric_limits<double>::infinity();
  int exponent = 0;  // of two; the decimal is then between 1/2 and 1
  const auto bits_of = [](int point) { return std::clamp(3 * point, 1, kMostBits); };
  for (int bits; decimal.point > 0; exponent += bits) decimal.divide(bits = bits_of(decimal.point));
  for (int bits; decimal.point < 0 || decimal.digits[0] < 5; exponent -= bits)
    decimal.multiply(bits = bits_of(-decimal.point));
  const int bits = std::min(format.bits, exponent - format.least);
  if (bits < 0) return 0;
  if (bits > 0) decimal.multiply(bits);
  uint64_t mantissa = 0;
  for (int i = 0; i < decimal.point; ++i) mantissa = mantissa * 10 + decimal.digit(i);
  mantissa += decimal.rounds_up(decimal.point, mantissa & 1);
  return std::ldexp(static_cast<double>(mantissa), exponent - bits);
}

// `text` from byte `at` on; `at` advances past what is read.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  size_t at = 0;

  char peek() const { return at < text_.size() ? text_[at] : '\0'; }
  bool take(char lower) {
    const bool same = std::tolower(static_cast<unsigned char>(peek())) == lower;
    at += same;
    return same;
  }
  bool take(std::string_view lower) {
    const size_t before = at;
    for (const char c : lower)
      if (!take(c)) return at = before, false;
    return true;
  }
  // The letters and digits in brackets that strtod accepts after a NaN.
  void skip_brackets() {
    const size_t before = at;
    if (!take('(')) return;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at;
    if (!take(')')) at = before;
  }
  // e+12; reads nothing if no digits follow.
  int exponent(char letter) {
    const size_t before = at;
    if (!take(letter)) return 0;
    const bool negative = peek() == '-';
    at += negative || peek() == '+';
    if (!std::isdigit(static_cast<unsigned char>(peek()))) return at = before, 0;
    int value = 0;
    for (; std::isdigit(static_cast<unsigned char>(peek())); ++at) value = std::min(value * 10 + peek() - '0', 100000);
    return negative ? -value : value;
  }

 private:
  std::string_view text_;
};

// Digits of one base, with a point among them; false if there are none. each(value, places after the point)
template <class Each>
bool read_digits(Reader& reader, bool hexadecimal, Each each) {
  bool any = false, point = false;
  for (;; ++reader.at) {
    const auto c = static_cast<unsigned char>(reader.peek());
    if (c == '.' && !point) point = true;
    else if (hexadecimal ? std::isxdigit(c) : std::isdigit(c)) {
      each(static_cast<uint8_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10), point);
      any = true;
    } else return any;
  }
}

double read_hexadecimal(Reader& reader, Format format, bool& any) {
  Decimal decimal;
  uint64_t mantissa = 0;
  int exponent = 0;
  any = read_digits(reader, true, [&](uint8_t digit, bool behind) {
    const bool room = mantissa < uint64_t{1} << 58;
    if (room) mantissa = mantissa << 4 | digit;
    else mantissa |= digit != 0;  // far past all digits that are kept
    exponent += (room ? 0 : 4) - (behind ? 4 : 0);
  });
  exponent = std::clamp(exponent + reader.exponent('p'), -2000, 2000);
  for (uint64_t rest = mantissa; rest > 0; rest /= 10, ++decimal.point)
    decimal.digits.insert(decimal.digits.begin(), static_cast<uint8_t>(rest % 10));
  decimal.trim();
  decimal.scale(exponent);
  return rounded(std::move(decimal), format);
}

double read_decimal(Reader& reader, Format format, bool& any) {
  Decimal decimal;
  any = read_digits(reader, false, [&](uint8_t digit, bool behind) {
    if (decimal.digits.empty() && digit == 0) decimal.point -= behind;
    else {
      decimal.point += !behind;
      decimal.push(digit);
    }
  });
  if (!any) return 0;
  decimal.trim();
  decimal.point = std::clamp(decimal.point + reader.exponent('e'), -100000, 100000);
  return rounded(std::move(decimal), format);
}

double read_number(std::string_view text, Format format, size_t& used) {
  Reader reader(text);
  while (std::isspace(static_cast<unsigned char>(reader.peek()))) ++reader.at;
  const bool negative = reader.peek() == '-';
  reader.at += negative || reader.peek() == '+';
  double value = 0;
  bool any = true;
  const size_t start = reader.at;
  if (reader.take("inf")) {
    (void)reader.take("inity");
    value = std::numeric_limits<double>::infinity();
  } else if (reader.take("nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
    reader.skip_brackets();
  } else if (reader.take("0x")) {
    value = read_hexadecimal(reader, format, any);
    if (!any) any = true, reader.at = start + 1;  // only the 0
  } else {
    value = read_decimal(reader, format, any);
  }
  used = any ? reader.at : 0;
  return negative && any ? -value : value;
}

}  // namespace

double to_double(std::string_view text, size_t& used) { return read_number(text, {53, -1074}, used); }
float to_float(std::string_view text, size_t& used) { return static_cast<float>(read_number(text, {24, -149}, used)); }

std::string to_text(double value, int digits) {
  std::string out = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return out + "nan";
  if (std::isinf(value)) return out + "inf";
  if (value == 0) return out + "0";
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  Decimal decimal;
  for (auto rest = static_cast<uint64_t>(std::ldexp(fraction, 53)); rest > 0; rest /= 10, ++decimal.point)
    decimal.digits.insert(decimal.digits.begin(), static_cast<uint8_t>(rest % 10));
  decimal.trim();
  decimal.scale(exponent - 53);
  if (static_cast<int>(decimal.digits.size()) > digits) {
    const bool up = decimal.rounds_up(digits, decimal.digit(digits - 1) & 1);
    decimal.digits.resize(digits);
    if (up) {
      while (!decimal.digits.empty() && decimal.digits.back() == 9) decimal.digits.pop_back();
      if (decimal.digits.empty()) decimal.digits.push_back(0), ++decimal.point;
      ++decimal.digits.back();
    }
    decimal.trim();
  }
  const int power = decimal.point - 1;
  const bool scientific = power < -4 || power >= digits;
  const int whole = scientific ? 1 : std::max(decimal.point, 0);
  const int last = std::max<int>(whole, static_cast<int>(decimal.digits.size()));
  if (whole == 0) out += '0';
  for (int i = whole == 0 ? decimal.point : 0; i < last; ++i) {
    if (i == (whole == 0 ? decimal.point : whole)) out += '.';
    out += static_cast<char>('0' + decimal.digit(i));
  }
  if (scientific) {
    out += power < 0 ? "e-" : "e+";
    if (std::abs(power) < 10) out += '0';
    out += std::to_string(std::abs(power));
  }
  return out;
}

}  // namespace py_ort
