#include "abi/error.h"
#include "abi/handles.h"
#include "py_ort/abi.h"

using namespace py_ort;

namespace {

struct OpenRun {
  std::unique_ptr<Run> run;
  bool ended = false;  // ort_run_end was called while the run was suspended
};

Handles<OpenRun>& runs() {
  static Handles<OpenRun> all;
  return all;
}

// Asyncify keeps one suspended stack: while a run is in ort_run_execute, no other may enter it.
uint32_t executing = 0;

Run* find(uint32_t id) {
  OpenRun* open = runs().find(id);
  if (open && !open->ended) return open->run.get();
  settle(invalid_argument("the core has no run ", id));
  return nullptr;
}

Dims dims_of(uint32_t rank, const int32_t* dims) { return Dims(dims, dims + rank); }

// True if dtype and dims are valid.
bool check(int dtype, uint32_t rank, const int32_t* dims) {
  bool fine = dtype > 0 && dtype <= static_cast<int>(DType::MAX) && rank <= 64;
  for (uint32_t i = 0; fine && i < rank; ++i) fine = dims[i] >= 0;
  return fine || settle(invalid_argument("a feed has a bad dtype (", dtype, ") or shape"));
}

}  // namespace

uint32_t ort_run_begin(uint32_t session) {
  auto* found = sessions().find(session);
  if (!found) return settle(Status(ErrorCode::no_such_session, to_text("the core has no session ", session)));
  if (!(*found)->prepared())
    return settle(invalid_argument("session ", session, " is not prepared (ort_session_prepare)"));
  settle(Status());
  return runs().add({std::make_unique<Run>(*found)});
}

int ort_run_feed(uint32_t run, uint32_t input, int dtype, uint32_t rank, const int32_t* dims, void* data, size_t size) {
  Run* found = find(run);
  if (!found || !check(dtype, rank, dims)) {
    std::free(data);
    return 0;
  }
  return settle(found->feed(input, static_cast<DType>(dtype), dims_of(rank, dims), data, size));
}

int ort_run_feed_device(uint32_t run, uint32_t input, uint32_t provider, int dtype, uint32_t rank, const int32_t* dims,
                        uint32_t id) {
  Run* found = find(run);
  return found && check(dtype, rank, dims) &&
         settle(found->feed_device(input, provider, static_cast<DType>(dtype), dims_of(rank, dims), id));
}

int ort_run_feed_container(uint32_t run, uint32_t input, int kind, int dtype) {
  Run* found = find(run);
  if (!found) return 0;
  if (kind != 1 && kind != 2)
    return settle(invalid_argument("a container has kind 1 (sequence) or 2 (optional), not ", kind));
  const auto container = kind == 1 ? Value::Kind::sequence : Value::Kind::optional;
  return settle(found->feed_container(input, container, static_cast<DType>(dtype)));
}

int ort_run_execute(uint32_t run) {
  if (executing)
    return settle(invalid_argument("run ", executing,
                                   " is under way: the core executes one run at a time, wait for it to finish"));
  Run* found = find(run);
  if (!found) return 0;
  executing = run;
  const Failure outcome = found->execute();
  executing = 0;
  if (runs().find(run)->ended) runs().remove(run);
  return settle(outcome);
}

void ort_run_cancel(uint32_t run) {
  if (Run* found = find(run)) found->cancel();
}

void ort_run_profile(uint32_t run) {
  if (Run* found = find(run)) found->profile();
}

const double* ort_run_times(uint32_t run) {
  Run* found = find(run);
  return found ? found->times().data() : nullptr;
}

int ort_run_replayable(uint32_t run) {
  Run* found = find(run);
  return found && found->replayable();
}

const uint32_t* ort_run_refresh(uint32_t run) {
  Run* found = find(run);
  const uint32_t* words = nullptr;
  static const uint32_t impossible = UINT32_MAX;
  if (!found || !settle(found->refresh(words))) return nullptr;
  return words ? words : &impossible;
}

const uint32_t* ort_run_output(uint32_t run, uint32_t output) {
  Run* found = find(run);
  const uint32_t* words = nullptr;
  return found && settle(found->describe_output(output, words)) ? words : nullptr;
}

void ort_run_end(uint32_t run) {
  OpenRun* open = runs().find(run);
  if (!open) return;
  if (run != executing) {
    runs().remove(run);
  } else {
    open->run->cancel();
    open->ended = true;
  }
}
