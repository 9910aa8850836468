// LSTM, and com.microsoft's DynamicQuantizeLSTM: gates in the order input, output, forget, cell.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class LSTM {
 public:
  static Status make(const KernelInfo& info, LSTM& out) {
    return out.net_.read(info, RecurrentSteps::lstm, {"Sigmoid", "Tanh", "Tanh"});
  }
  Status operator()(KernelContext& context) const { return net_.run(context); }

 private:
  RecurrentNet net_;
};

class DynamicQuantizeLSTM {
 public:
  static Status make(const KernelInfo& info, DynamicQuantizeLSTM& out) {
    out.net_.quantize_weights();
    return out.net_.read(info, RecurrentSteps::lstm, {"Sigmoid", "Tanh", "Tanh"});
  }
  Status operator()(KernelContext& context) const {
    PY_ORT_ENSURE(context.input(8) && context.input(10), "the scales of W and R, inputs 8 and 10, are missing");
    return net_.run(context);
  }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "DynamicQuantizeLSTM",
              "float32;int8,uint8;int8,uint8;float32;int32;float32;float32;float32;float32;int8,uint8;float32;"
              "int8,uint8",
              DynamicQuantizeLSTM);
PY_ORT_KERNEL("", "LSTM",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<LSTM>);

}  // namespace
}  // namespace py_ort
