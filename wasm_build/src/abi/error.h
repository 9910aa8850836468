// The last error, as ort_last_error returns it.
#pragma once

#include "session/session.h"

namespace py_ort {

// Keeps the failure for ort_last_error (or clears it after a success); returns true if it was a success.
bool settle(const Failure& outcome);
inline bool settle(Status status) { return settle(Failure{std::move(status), nullptr}); }

void append_json(std::string& out, std::string_view text);

}  // namespace py_ort
