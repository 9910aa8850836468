// Functions that the page calls inside jsepRun.
#include "ep/jsep.h"

#include "ep/jsep_call.h"
#include "py_ort/abi.h"

using namespace py_ort;

namespace {

JsepCall* find(uint32_t context) {
  JsepCall* call = JsepCall::with_context(context);
  if (!call) jsep::set_error(ErrorCode::invalid_argument, "no jsepRun with this context is under way");
  return call;
}

}  // namespace

uint32_t ort_jsep_output(uint32_t context, uint32_t index, int dtype, uint32_t rank, const int32_t* dims) {
  JsepCall* call = find(context);
  return call ? call->output(index, static_cast<DType>(dtype), Dims(dims, dims + rank)) : 0;
}

int ort_jsep_output_view(uint32_t context, uint32_t index, uint32_t input, uint32_t rank, const int32_t* dims) {
  JsepCall* call = find(context);
  return call && call->output_view(index, input, Dims(dims, dims + rank));
}

void ort_jsep_error(int code, const char* message) {
  const bool known = code > 0 && code <= static_cast<int>(ErrorCode::MAX);
  jsep::set_error(known ? static_cast<ErrorCode>(code) : ErrorCode::fail, message);
}
