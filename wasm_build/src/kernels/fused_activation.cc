#include "fused_activation.h"

#include <algorithm>
#include <limits>

namespace py_ort {

namespace {
struct Known {
  const char* name;
  Activation otherwise;  // with the operator's defaults
  int params;            // how many numbers may follow
};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Known kKnown[] = {
    {"", {}, 0},
    {"Identity", {}, 0},
    {"Relu", {Activation::clamp, 0, kInfinity}, 0},
    {"Relu6", {Activation::clamp, 0, 6}, 0},
    {"Clip", {Activation::clamp, -kInfinity, kInfinity}, 2},
    {"LeakyRelu", {Activation::leaky_relu, 0.01f, 0}, 1},
    {"Sigmoid", {Activation::sigmoid, 0, 0}, 0},
    {"Tanh", {Activation::tanh, 0, 0}, 0},
    {"HardSigmoid", {Activation::hard_sigmoid, 0.2f, 0.5f}, 2},
    {"HardSwish", {Activation::hard_swish, 0, 0}, 0},
    {"Elu", {Activation::elu, 1, 0}, 1},
    {"Softplus", {Activation::softplus, 0, 0}, 0},
    {"Softsign", {Activation::softsign, 0, 0}, 0},
    {"Gelu", {Activation::gelu, 0, 0}, 0},
    {"FastGelu", {Activation::gelu_tanh, 0, 0}, 0},
    {"GeluTanh", {Activation::gelu_tanh, 0, 0}, 0},
    {"QuickGelu", {Activation::swish, 1.702f, 0}, 1},
    {"Swish", {Activation::swish, 1, 0}, 1},
    {"Silu", {Activation::swish, 1, 0}, 0},
    {"Mish", {Activation::mish, 0, 0}, 0},
    {"Exp", {Activation::exp, 0, 0}, 0},
    {"Abs", {Activation::abs, 0, 0}, 0},
    {"Affine", {Activation::affine, 1, 0}, 2},
    {"ScaledTanh", {Activation::scaled_tanh, 1, 1}, 2},
    {"ThresholdedRelu", {Activation::thresholded_relu, 1, 0}, 1},
    {"Selu", {Activation::selu, 1.67326319217681884765625f, 1.05070102214813232421875f}, 2},
    {"Celu", {Activation::celu, 1, 0}, 1},
    {"Shrink", {Activation::shrink, 0, 0.5f}, 2},
};

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return lower(x) == lower(y); });
}
const Known* find(std::string_view name) {
  for (const Known& known : kKnown)
    if (same_letters(name, known.name)) return &known;
  return nullptr;
}
}  // namespace

int activation_params(std::string_view name) {
  const Known* known = find(name);
  return known ? known->params : 0;
}

Status make_activation(std::string_view name, const std::vector<float>& params, Activation& out) {
  const Known* known = find(name);
  if (!known) return not_implemented("no activation is called ", name);
  out = known->otherwise;
  if (known->params >= 1 && params.size() >= 1) out.a = params[0];
  if (known->params >= 2 && params.size() >= 2) out.b = params[1];
  return {};
}

Status read_activation(const Attributes& attributes, Activation& out) {
  std::vector<float> params = attributes.numbers("activation_params");
  if (params.empty() && attributes.has("activation_alpha"))
    params = {attributes.number("activation_alpha", 0), attributes.number("activation_beta", 0)};
  PY_ORT_TRY(make_activation(attributes.text("activation", ""), params, out));
  if (!attributes.has("activation_offset")) return {};
  switch (out.kind) {
    case Activation::leaky_relu:
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::hard_swish:
    case Activation::gelu:
    case Activation::swish: out.b = attributes.number("activation_offset", 0); return {};
    default: return not_implemented("activation_offset behind ", attributes.text("activation", ""));
  }
}

}  // namespace py_ort
