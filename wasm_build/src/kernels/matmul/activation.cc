#include "kernels/matmul/activation.h"

#include <algorithm>

namespace py_ort {

namespace {
struct Known {
  std::string_view name;
  Activation otherwise;  // with the operator's defaults
  int params;            // the most numbers that may follow
};
constexpr Known kKnown[] = {{"", {}, 0},
                            {"Identity", {}, 0},
#define PY_ORT_KNOWN(kind, name, params, a, b) {name, {Activation::kind, a, b}, params},
                            PY_ORT_ACTIVATIONS(PY_ORT_KNOWN)
#undef PY_ORT_KNOWN
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

}  // namespace py_ort
