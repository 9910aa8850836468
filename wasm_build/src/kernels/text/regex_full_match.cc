#include "py_ort/kernel.h"
#include "kernels/text/regex.h"

namespace py_ort {
namespace {

class RegexFullMatch {
 public:
  static Status make(const KernelInfo& info, RegexFullMatch& out) {
    return Regex::compile(info.attributes.text("pattern", ""), out.regex_);
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::bool_, in.dims, out));
    for (int64_t i = 0, n = in.count(); i < n; ++i)
      out->mutable_data<uint8_t>()[i] = regex_.full_match(in.strings()[i]);
    return {};
  }

 private:
  Regex regex_;
};

PY_ORT_KERNEL("", "RegexFullMatch", "string", RegexFullMatch);

}  // namespace
}  // namespace py_ort
