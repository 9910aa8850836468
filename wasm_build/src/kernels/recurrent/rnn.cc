// RNN: one gate, the new state.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class RNN {
 public:
  static Status make(const KernelInfo& info, RNN& out) { return out.net_.read(info, RecurrentSteps::rnn, {"Tanh"}); }
  Status operator()(KernelContext& context) const { return net_.run(context); }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL("", "RNN",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<RNN>);

}  // namespace
}  // namespace py_ort
