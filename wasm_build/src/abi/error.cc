#include "abi/error.h"

#include "core/running_kernel.h"
#include "py_ort/abi.h"

namespace py_ort {
namespace {

std::string& last_error() {
  static std::string json;
  return json;
}

void field(std::string& out, std::string_view name, std::string_view text) {
  append_json(out += ',', name);
  append_json(out += ':', text);
}

}  // namespace

void append_json(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

bool settle(const Failure& outcome) {
  std::string& json = last_error();
  json.clear();
  if (outcome.status.ok()) return true;
  const PlanNode* node = outcome.node;
  json = to_text("{\"code\":", static_cast<int>(outcome.status.code()));
  field(json, "message", outcome.status.message());
  field(json, "node", node ? node->known_as() : "");
  field(json, "op_type", node ? node->op_type : "");
  field(json, "domain", node ? node->domain : "");
  field(json, "provider", node ? node->provider->name : "");
  json += '}';
  return false;
}

}  // namespace py_ort

const char* const* ort_kernel_at_work() {
  static const char* texts[2];
  const py_ort::PlanNode* node = py_ort::node_at_work;
  if (!node) return nullptr;
  // The texts are in the plan, each ends in a zero.
  texts[0] = node->known_as().data();
  texts[1] = node->op_type.data();
  return texts;
}

const char* ort_last_error() { return py_ort::last_error().c_str(); }
