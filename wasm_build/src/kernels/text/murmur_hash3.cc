// com.microsoft's MurmurHash3: MurmurHash3_x86_32 of each element's bytes.
#include <bit>
#include <cstring>
#include <string>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

uint32_t mixed(uint32_t block) { return std::rotl(block * 0xcc9e2d51u, 15) * 0x1b873593u; }

uint32_t hash(const uint8_t* bytes, size_t count, uint32_t seed) {
  uint32_t h = seed;
  const size_t whole = count / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    uint32_t block;
    std::memcpy(&block, bytes + i, 4);
    h = std::rotl(h ^ mixed(block), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t i = count; i > whole; --i) rest = rest << 8 | bytes[i - 1];
  if (count > whole) h ^= mixed(rest);
  h ^= static_cast<uint32_t>(count);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

class MurmurHash3 {
 public:
  explicit MurmurHash3(const KernelInfo& info)
      : seed_(static_cast<uint32_t>(info.attributes.integer("seed", 0))),
        positive_(info.attributes.integer("positive", 1) == 1) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Tensor* y;
    PY_ORT_TRY(context.output(0, positive_ ? DType::uint32 : DType::int32, x.dims, y));
    auto* to = y->mutable_data<uint32_t>();
    for (int64_t i = 0; i < x.count(); ++i) {
      if (x.dtype == DType::string_) {
        const std::string& text = x.strings()[i];
        to[i] = hash(reinterpret_cast<const uint8_t*>(text.data()), text.size(), seed_);
      } else {
        const size_t width = byte_size(x.dtype, 1);
        to[i] = hash(x.data<uint8_t>() + static_cast<size_t>(i) * width, width, seed_);
      }
    }
    return {};
  }

 private:
  uint32_t seed_;
  bool positive_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "MurmurHash3", "int32,uint32,int64,uint64,float32,float64,string", MurmurHash3);

}  // namespace
}  // namespace py_ort
