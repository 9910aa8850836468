// GRU: gates in the order update, reset, hidden.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class GRU {
 public:
  static Status make(const KernelInfo& info, GRU& out) {
    return out.net_.read(info, RecurrentSteps::gru, {"Sigmoid", "Tanh"});
  }
  Status operator()(KernelContext& context) const { return net_.run(context); }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL("", "GRU",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<GRU>);

}  // namespace
}  // namespace py_ort
