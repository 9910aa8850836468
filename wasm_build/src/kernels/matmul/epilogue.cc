#include "kernels/matmul/epilogue.h"

#include <algorithm>
#include <limits>

#include "kernels/matmul/activation.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {

namespace {
constexpr int kValue = 0, kResidual = 1, kFirst = 2;  // registers

// Chooses the form of the micro-kernels' loops.
void choose_form(Epilogue& epilogue, bool offset) {
  Activation& activation = epilogue.activation;
  if (offset) epilogue.form = Epilogue::function;
  else if (activation.kind == Activation::none) epilogue.form = Epilogue::identity;
  else if (activation.kind == Activation::relu || activation.kind == Activation::clip) epilogue.form = Epilogue::clamp;
  else epilogue.form = Epilogue::function;
  if (epilogue.form == Epilogue::clamp && activation.kind == Activation::relu)
    activation = {Activation::clip, 0, std::numeric_limits<float>::infinity()};
}
}  // namespace

bool recognized(const std::vector<Instruction>& program, Epilogue& out, bool& residual) {
  out = {}, residual = false;
  if (program.empty()) return true;
  int value = kValue, made = kFirst, number = -1;  // registers; number: of the last Number
  bool offset = false;
  for (const Instruction& step : program) {
    const auto adds = [&](int which) { return step.op == "Add" && step.registers == std::vector<int>{value, which}; };
    const int result = made++;
    if (step.op == "Number" && step.numbers.size() == 1 && number < 0) {
      number = result, out.offset = step.numbers[0];
      continue;
    }
    if (adds(kResidual) && !residual) {
      residual = true;
      out.residual_last = offset || out.activation.kind != Activation::none;
    } else if (out.residual_last) {
      return false;  // no step may follow
    } else if (number >= 0 && adds(number)) {
      offset = true;
    } else if (step.registers != std::vector<int>{value} || offset || out.activation.kind != Activation::none ||
               !make_activation(step.op, step.numbers, out.activation).ok()) {
      return false;
    }
    value = result;
  }
  if ((number >= 0) != offset || value != made - 1) return false;
  choose_form(out, offset);
  return true;
}

Status ProductEpilogue::read(const KernelInfo& info, ProductEpilogue& out) {
  const std::string text = info.attributes.text(dialect::kEpilogue, "");
  std::vector<Instruction> program;
  PY_ORT_TRY(parse_program(text, program));
  if (!recognized(program, out.form_, out.residual_)) return not_implemented(info.op_type, " with the epilogue ", text);
  return {};
}

Status ProductEpilogue::residual(const KernelContext& context, const Dims& dims, const Tensor*& z) const {
  return residual(context.input(dialect::kProductResidual), dims, z);
}

Status ProductEpilogue::residual(const Tensor* given, const Dims& dims, const Tensor*& z) const {
  z = given;
  PY_ORT_ENSURE(residual_ == (z != nullptr),
                z ? "input 3 is a residual that the epilogue does not read" : "the epilogue reads a residual, input 3");
  PY_ORT_ENSURE(!z || z->dims == dims, "the residual of shape ", z->dims, " is not shaped like the result: ", dims);
  return {};
}

}  // namespace py_ort
