// One call of jsepRun: the page's `context`, and the outputs that the page makes with ort_jsep_output.
#pragma once

#include <vector>

#include "ep/slot.h"

namespace py_ort {

class JsepCall {
 public:
  // `inputs`: null if omitted.
  JsepCall(const Plan& plan, const PlanNode& node, const std::vector<Slot*>& inputs);
  ~JsepCall() { current_ = nullptr; }
  JsepCall(const JsepCall&) = delete;
  JsepCall& operator=(const JsepCall&) = delete;

  Status run(uint32_t kernel);
  // The outputs that the page made; the others are empty.
  std::vector<Tensor>& outputs() { return outputs_; }

  // --- called by the page during run(). `context` must be the one that it received.
  static JsepCall* with_context(uint32_t context);
  // Undefined dtype: the plan's.
  uint32_t output(uint32_t index, DType dtype, Dims dims);
  bool output_view(uint32_t index, uint32_t input, Dims dims);

 private:
  DType planned_dtype(uint32_t index) const;
  void append(const Slot* slot, gen::InputUse use);
  bool fail(const Status& status);

  static JsepCall* current_;
  const Plan& plan_;
  const PlanNode& node_;
  std::vector<Slot*> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<uint32_t> words_;
};

}  // namespace py_ort
