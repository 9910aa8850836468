// One run of a session: its feeds, the values between the nodes, its outputs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "session/refresh.h"
#include "session/session.h"

namespace py_ort {

class Run {
 public:
  explicit Run(std::shared_ptr<Session> session);

  Status feed(uint32_t input, DType dtype, Dims dims, void* data, size_t size);  // takes ownership of `data`
  Status feed_device(uint32_t input, uint32_t provider, DType dtype, Dims dims, uint32_t id);
  Status feed_container(uint32_t input, Value::Kind kind, DType dtype);
  // Once per run. May suspend.
  Failure execute();
  // Replaces execute: see ort_run_refresh. Null if it is not possible.
  Failure refresh(const uint32_t*& words);
  void cancel() { cancelled_ = true; }
  // Records the nodes' times; call it before execute.
  void profile() { profiling_ = true; }
  // In the numbers of abi.h.
  const std::vector<double>& times() const { return times_; }
  bool replayable() const { return replayable_; }
  // Null if there is no such output, or the run has not ended.
  const Slot* output(uint32_t index) const { return index < outputs_.size() ? &outputs_[index] : nullptr; }
  // Output `index` in the words of abi.h.
  Status describe_output(uint32_t index, const uint32_t*& words);

  // --- for the executor
  const Session& session() const { return *session_; }
  std::span<const Slot> slots() const { return slots_; }
  Slot& slot(int32_t value) { return slots_[static_cast<size_t>(value)]; }
  std::string_view name(int32_t value) const { return session_->plan().value_name(value); }
  bool cancelled() const { return cancelled_; }
  // Marks that a step depends on the contents of these feeds.
  void not_replayable() { replayable_ = false; }
  // The running node; after a failure, the innermost node that failed.
  const PlanNode* failed = nullptr;
  double resumed_ms = 0;  // the time when the page last handled messages
  // For profiles only: the time when the running node's inputs were ready.
  bool profiling() const { return profiling_; }
  double ready_ms = 0;
  void note_time(const PlanNode& node, double began_ms, double ready_ms, double ended_ms) {
    times_.insert(times_.end(), {static_cast<double>(node.index), began_ms, ready_ms, ended_ms});
    ++times_.front();
  }

 private:
  Status check_input(uint32_t input) const;
  Status check_feed(uint32_t input, DType dtype, const Dims& dims) const;
  Status put_feed(int32_t value, Value fed);
  Status finish();
  Status check_all_fed() const;

  std::shared_ptr<Session> session_;
  std::vector<Slot> slots_;  // by Plan.values; emptied by execute
  std::vector<Slot> outputs_;
  std::vector<uint32_t> words_;
  Given given_;
  std::vector<std::shared_ptr<Storage>> encoded_;  // string outputs, as bytes
  std::vector<double> times_{0};                   // the number of nodes, then their times
  bool started_ = false, cancelled_ = false, replayable_ = true, profiling_ = false;
};

}  // namespace py_ort
