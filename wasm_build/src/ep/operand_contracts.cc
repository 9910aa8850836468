#include "ep/operand_contracts.h"

#include <algorithm>
#include <array>
#include <limits>

#include "py_ort/gen/dialect.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();
constexpr int64_t kNoSize = -1;  // of an inexact division: equal to no size
using Code = std::span<const int16_t>;

}  // namespace

// One evaluation. The code is walked twice: to define symbols, and to check.
class ContractCheck {
 public:
  ContractCheck(const OperandContract& of, std::span<const Dims* const> inputs)
      : of_(of), row_(*of.contract_), inputs_(inputs) {
    symbols_.fill(kUnknown);
  }

  Status run() {
    for (const bool checks : {false, true}) {
      const int16_t* at = row_.code.data();
      for (size_t clause = 0; clause < row_.clauses.size(); ++clause) {
        const Code condition = counted(at);
        const int64_t applies = condition.empty() ? 1 : value(condition);
        const bool is_shape = *at++ == 0;
        const bool skipped = applies == kUnknown || applies == 0;
        const bool fits = is_shape ? shape(at, skipped, checks) : expression(at) || !checks || skipped;
        if (!fits) return broken(clause, is_shape);
      }
    }
    return {};
  }

 private:
  static Code counted(const int16_t*& at) {
    const auto size = static_cast<size_t>(*at++);
    at += size;
    return {at - size, size};
  }

  const Dims* dims(size_t operand) const { return operand < inputs_.size() ? inputs_[operand] : nullptr; }

  int64_t size_at(size_t operand, int64_t axis) const {
    const Dims* sizes = dims(operand);
    const auto rank = static_cast<int64_t>(sizes ? sizes->size() : 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return kUnknown;
    if (axis == rank - 1)
      for (const auto& [input, columns] : of_.columns_)
        if (input == operand) return columns;
    return (*sizes)[static_cast<size_t>(axis)];
  }

  bool expression(const int16_t*& at) {
    const int64_t holds = value(counted(at));
    return holds == kUnknown || holds != 0;
  }

  bool shape(const int16_t*& at, bool skipped, bool checks) {
    const auto operand = static_cast<size_t>(*at++);
    operand_ = operand;
    const Dims* sizes = dims(operand);
    const auto rank = static_cast<int64_t>(sizes ? sizes->size() : 0);
    bool found = false, fits = true;
    for (int16_t forms = *at++; forms > 0; --forms) {
      const bool open = *at++ != 0;
      const int64_t head = *at++, tail = *at++;
      const bool mine = !found && sizes && (open ? rank >= head + tail : rank == head + tail);
      found |= mine;
      for (int64_t item = 0; item < head + tail; ++item) {
        const int64_t size = mine ? size_at(operand, item < head ? item : item - head - tail) : kUnknown;
        const bool same = one_of(at, size, mine && !skipped && !checks);
        fits &= same || !mine;
      }
    }
    return skipped || !checks || !sizes || (found && fits);
  }

  bool one_of(const int16_t*& at, int64_t size, bool defines) {
    bool any = *at == 0;
    for (int16_t choices = *at++; choices > 0; --choices) {
      const Code code = counted(at);
      if (defines && code.size() == 2 && code[0] == gen::kContractSymbol) {
        int64_t& symbol = symbols_[static_cast<size_t>(code[1])];
        if (symbol == kUnknown) symbol = size;
      }
      const int64_t wanted = value(code);
      any |= wanted == kUnknown || size == kUnknown || wanted == size;
    }
    return any;
  }

  int64_t value(Code code) {
    int64_t stack[16];
    size_t top = 0;
    const auto binary = [&](auto f) {
      const int64_t b = stack[--top], a = stack[--top];
      stack[top++] = a == kUnknown || b == kUnknown ? kUnknown : f(a, b);
    };
    for (size_t i = 0; i < code.size(); ++i) {
      const auto next = [&] { return static_cast<size_t>(code[++i]); };
      switch (code[i]) {
        case gen::kContractConstant: stack[top++] = code[++i]; break;
        case gen::kContractSymbol: stack[top++] = symbols_[next()]; break;
        case gen::kContractAttribute: stack[top++] = of_.attributes_[next()]; break;
        case gen::kContractTextIs: {
          const size_t attribute = next();
          stack[top++] = of_.texts_[attribute] == row_.texts[next()];
          break;
        }
        case gen::kContractDim: {
          const int64_t axis = stack[--top];
          stack[top++] = axis == kUnknown ? kUnknown : size_at(next(), axis);
          break;
        }
        case gen::kContractRank: {
          const Dims* sizes = dims(next());
          stack[top++] = sizes ? static_cast<int64_t>(sizes->size()) : kUnknown;
          break;
        }
        case gen::kContractSize: {
          const Dims* sizes = dims(next());
          stack[top++] = sizes ? element_count(*sizes) : kUnknown;
          break;
        }
        case gen::kContractGiven: stack[top++] = dims(next()) != nullptr; break;
        case gen::kContractAdd: binary([](int64_t a, int64_t b) { return a + b; }); break;
        case gen::kContractSubtract: binary([](int64_t a, int64_t b) { return a - b; }); break;
        case gen::kContractMultiply: binary([](int64_t a, int64_t b) { return a * b; }); break;
        case gen::kContractDivide:
          binary([](int64_t a, int64_t b) { return b > 0 && a % b == 0 ? a / b : kNoSize; });
          break;
        case gen::kContractModulo: binary([](int64_t a, int64_t b) { return b > 0 ? a % b : kNoSize; }); break;
        case gen::kContractEqual: binary([](int64_t a, int64_t b) { return int64_t{a == b}; }); break;
        case gen::kContractUnequal: binary([](int64_t a, int64_t b) { return int64_t{a != b}; }); break;
        case gen::kContractAtMost: binary([](int64_t a, int64_t b) { return int64_t{a <= b}; }); break;
        case gen::kContractBelow: binary([](int64_t a, int64_t b) { return int64_t{a < b}; }); break;
        case gen::kContractAnd: binary([](int64_t a, int64_t b) { return int64_t{a && b}; }); break;
        case gen::kContractOr: binary([](int64_t a, int64_t b) { return int64_t{a || b}; }); break;
        case gen::kContractNot: stack[top - 1] = stack[top - 1] == kUnknown ? kUnknown : !stack[top - 1]; break;
        case gen::kContractBroadcasts: {
          const size_t from = next(), to = next();
          stack[top++] = broadcasts(from, to, true);
          break;
        }
        case gen::kContractSame: {
          const size_t from = next(), to = next();
          stack[top++] = broadcasts(from, to, false);
          break;
        }
        case gen::kContractPrefix:
        case gen::kContractSuffix: {
          const bool first = code[i] == gen::kContractPrefix;
          const int64_t count = stack[--top];
          const size_t a = next(), b = next();
          stack[top++] = count == kUnknown ? kUnknown : agree(a, b, count, first);
          break;
        }
        case gen::kContractWithin: {
          const int64_t axis = stack[--top];
          const size_t a = next(), b = next();
          stack[top++] = axis == kUnknown ? kUnknown : within(a, b, axis);
          break;
        }
        default: return kUnknown;
      }
    }
    return stack[0];
  }

  int64_t broadcasts(size_t from, size_t to, bool ones) const {
    const Dims *a = dims(from), *b = dims(to);
    if (!a || !b) return kUnknown;
    if (a->size() > b->size() || (!ones && a->size() != b->size())) return 0;
    for (int64_t axis = 1; axis <= static_cast<int64_t>(a->size()); ++axis) {
      const int64_t own = size_at(from, -axis), wanted = size_at(to, -axis);
      if (own != wanted && !(ones && own == 1)) return 0;
    }
    return 1;
  }

  // 1 if the first or last `count` axes have the same sizes.
  int64_t agree(size_t a, size_t b, int64_t count, bool first) const {
    if (!dims(a) || !dims(b)) return kUnknown;
    if (count < 0) return 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t axis = first ? i : -1 - i, size = size_at(a, axis);
      if (size == kUnknown || size != size_at(b, axis)) return 0;
    }
    return 1;
  }

  // 1 if no axis of a, except `but`, is longer than that of b.
  int64_t within(size_t a, size_t b, int64_t but) const {
    if (!dims(a) || !dims(b)) return kUnknown;
    const auto rank = static_cast<int64_t>(dims(a)->size());
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != but && axis != but + rank && size_at(a, axis) > size_at(b, axis)) return 0;
    return 1;
  }

  Status broken(size_t clause, bool is_shape) const {
    std::string known;
    for (size_t i = 0; i < row_.symbols.size(); ++i)
      if (symbols_[i] != kUnknown)
        known += to_text(known.empty() ? ", where " : ", ", row_.symbols[i], " = ", symbols_[i]);
    if (is_shape)
      return runtime_error("input ", operand_, " has the shape ", *dims(operand_), ", not that of ",
                           row_.clauses[clause], known);
    std::string operands;
    for (size_t i = 0; i < row_.operands.size() && i < inputs_.size(); ++i)
      if (dims(i)) operands += to_text(operands.empty() ? " of " : ", ", row_.operands[i], " ", *dims(i));
    return runtime_error("the shapes", operands, " do not fit: ", row_.clauses[clause], " does not hold", known);
  }

  const OperandContract& of_;
  const gen::ContractRow& row_;
  std::span<const Dims* const> inputs_;
  std::array<int64_t, gen::kContractSymbols> symbols_;
  size_t operand_ = 0;
};

OperandContract::OperandContract(const PlanNode& node) {
  const auto row = std::find_if(std::begin(gen::kContracts), std::end(gen::kContracts), [&](const auto& each) {
    return each.domain == node.domain && each.op_type == node.op_type;
  });
  if (row == std::end(gen::kContracts)) return;
  contract_ = &*row;
  const Attributes attributes(node.attributes);
  for (const auto& [name, number, text] : row->attributes) {
    const size_t listed = attributes.integers(name).size();  // a list's value is its length
    attributes_.push_back(listed ? static_cast<int64_t>(listed) : attributes.integer(name, number));
    texts_.push_back(attributes.view(name, text));
  }
  // Columns of wider tensors: docs/internals.md, section 2.
  for (const auto& [name, input] :
       {std::pair{dialect::kXColumns, size_t{0}}, std::pair{dialect::kResidualColumns, dialect::kProductResidual}})
    if (const auto columns = attributes.integers(name); columns.size() == 2) columns_.emplace_back(input, columns[1]);
}

Status OperandContract::check(std::span<const Dims* const> inputs) const {
  if (!contract_ || fits_as_last(inputs)) return {};
  PY_ORT_TRY(ContractCheck(*this, inputs).run());
  remember(inputs);
  return {};
}

bool OperandContract::fits_as_last(std::span<const Dims* const> inputs) const {
  auto at = last_.begin();
  for (const Dims* dims : inputs) {
    const int64_t rank = dims ? static_cast<int64_t>(dims->size()) : -1;
    if (at == last_.end() || *at++ != rank) return false;
    if (!dims) continue;
    if (!std::equal(dims->begin(), dims->end(), at)) return false;
    at += rank;
  }
  return true;
}

void OperandContract::remember(std::span<const Dims* const> inputs) const {
  last_.clear();
  for (const Dims* dims : inputs) {
    last_.push_back(dims ? static_cast<int64_t>(dims->size()) : -1);
    if (dims) last_.insert(last_.end(), dims->begin(), dims->end());
  }
}

Status check_operands(const PlanNode& node, const OperandContract& contract, std::span<const Slot> slots) {
  if (contract.empty()) return {};
  const Dims* dims[gen::kContractOperands] = {};
  const size_t count = std::min(node.inputs.size(), std::size(dims));
  for (size_t i = 0; i < count; ++i)
    if (node.inputs[i] != kOmitted)
      if (const Slot& slot = slots[static_cast<size_t>(node.inputs[i])]; slot.is_tensor())
        dims[i] = &slot.value.tensor.dims;
  return contract.check({dims, count});
}

}  // namespace py_ort
