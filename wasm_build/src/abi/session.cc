#include "abi/error.h"
#include "abi/handles.h"
#include "core/heap_use.h"
#include "py_ort/abi.h"

using namespace py_ort;

namespace {

Session* find(uint32_t id) {
  auto* session = sessions().find(id);
  if (!session) settle(Status(ErrorCode::no_such_session, to_text("the core has no session ", id)));
  return session ? session->get() : nullptr;
}

}  // namespace

void* ort_malloc(size_t size) { return allocate(size); }
void ort_free(void* pointer) { std::free(pointer); }

const uint32_t* ort_tensor_bytes(int reset) {
  static uint32_t words[2];
  const HeapUse use = heap_use(reset != 0);
  words[0] = static_cast<uint32_t>(use.now);
  words[1] = static_cast<uint32_t>(use.peak);
  return words;
}

uint32_t ort_session_create(void* plan, size_t size) {
  std::shared_ptr<Session> session;
  return settle(Session::create(plan, size, session)) ? sessions().add(std::move(session)) : 0;
}

int ort_session_runs_microkernels(uint32_t session) {
  Session* found = find(session);
  return found && found->has_kernel(&KernelEntry::may_run_microkernels);
}

int ort_session_has_rare_kernels(uint32_t session) {
  Session* found = find(session);
  return found && found->has_kernel(&KernelEntry::rare);
}

void* ort_session_weight(uint32_t session, uint32_t index) {
  Session* found = find(session);
  return found ? found->weight_bytes(index) : nullptr;
}

int ort_session_share_weight(uint32_t session, uint32_t index, uint32_t owner, uint32_t other) {
  Session *found = find(session), *from = find(owner);
  return found && from && settle(found->share_weight(index, *from, other));
}

int ort_session_weight_on_device(uint32_t session, uint32_t index, uint32_t id) {
  Session* found = find(session);
  return found && settle(found->weight_on_device(index, id));
}

int ort_session_prepare(uint32_t session) {
  Session* found = find(session);
  if (!found) return 0;
  const PlanNode* failed = nullptr;
  Status status = found->prepare(failed);
  return settle(Failure{std::move(status), failed});
}

void ort_session_release(uint32_t session) { sessions().remove(session); }
