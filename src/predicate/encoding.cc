#include "predicate/encoding.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "predicate/number_form.h"

namespace tidelane::predicate {
namespace {

constexpr std::string_view kMagic = "H5Q1";
constexpr uint8_t kStringTag = 5;
constexpr uint64_t kNan = 0x7ff8000000000000;

template <typename T>
void Put(std::string& to, T number) {
  for (size_t i = 0; i < sizeof(T); ++i) to.push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

void PutBytes(std::string& to, const std::string& bytes) {
  Put(to, static_cast<uint32_t>(bytes.size()));
  to += bytes;
}

uint64_t BitsOf(double number) {
  return std::isnan(number) ? kNan : std::bit_cast<uint64_t>(number);
}

void PutNumber(std::string& to, Number number) {
  const NumberForm form = FormOf(number);
  Put(to, static_cast<uint8_t>(form));
  switch (form) {
    case NumberForm::kNone: break;
    case NumberForm::kInt64: Put(to, static_cast<uint64_t>(static_cast<int64_t>(number))); break;
    case NumberForm::kUint64: Put(to, static_cast<uint64_t>(number)); break;
    case NumberForm::kDouble: Put(to, BitsOf(static_cast<double>(number))); break;
    default: {
      const TwoDoubles two = Split(number);
      Put(to, BitsOf(two.nearest));
      Put(to, BitsOf(two.rest));
    }
  }
}

void PutNode(std::string& to, const Query& query) {
  Put(to, static_cast<uint8_t>(query.kind()));
  if (query.kind() != Query::Kind::kCondition) {
    PutNode(to, *query.left());
    if (query.right() != nullptr) PutNode(to, *query.right());
    return;
  }
  Put(to, static_cast<uint8_t>(query.subject()));
  Put(to, static_cast<uint8_t>(query.condition().comparison));
  Put(to, static_cast<uint16_t>(query.name().size()));
  to += query.name();
  Put(to, static_cast<uint8_t>(query.condition().values.size()));
  for (const Value& value : query.condition().values) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      Put(to, kStringTag);
      PutBytes(to, *text);
    } else {
      PutNumber(to, std::get<Number>(value));
    }
  }
  PutBytes(to, query.type());
}

// Reads bytes that may be anything. Nothing is allocated for a length before that many bytes are known to be there, and nothing for a
// node before its kind is read: memory is in proportion to the bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  QueryPtr Read() {
    if (bytes_.size() > kMostEncoded) return Fail("more bytes than a query has at most");
    std::string_view magic;
    if (!Take(kMagic.size(), magic)) return nullptr;
    if (magic != kMagic) {
      at_ = 0;
      return Fail("no encoded query, or one of a version that is not known here");
    }
    uint32_t declared = 0;
    if (!Get(declared)) return nullptr;
    if (declared == 0 || declared > kMostNodes) return Fail("a number of nodes that no query has");
    left_ = declared;
    QueryPtr query = Node(1);
    if (query == nullptr) return nullptr;
    if (left_ != 0) return Fail("fewer nodes than were announced");
    if (at_ != bytes_.size()) return Fail("bytes after the query's end");
    return query;
  }

  std::string& why() { return why_; }

 private:
  std::nullptr_t Fail(std::string_view reason) {
    if (why_.empty()) why_ = "at byte " + std::to_string(at_) + ": " + std::string(reason);
    return nullptr;
  }

  bool Take(size_t count, std::string_view& to) {
    if (count > bytes_.size() - at_) {
      Fail("the bytes end too early");
      return false;
    }
    to = {reinterpret_cast<const char*>(bytes_.data()) + at_, count};
    at_ += count;
    return true;
  }

  template <typename T>
  bool Get(T& number) {
    std::string_view bytes;
    if (!Take(sizeof(T), bytes)) return false;
    number = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      number = static_cast<T>(number | static_cast<T>(static_cast<uint8_t>(bytes[i])) << (8 * i));
    }
    return true;
  }

  template <typename Length>
  bool GetString(std::string& to) {
    Length length = 0;
    std::string_view bytes;
    if (!Get(length) || !Take(length, bytes)) return false;
    to = bytes;
    return true;
  }

  QueryPtr Node(size_t depth) {
    if (depth > kMostDepth) return Fail("deeper than a query is at most");
    if (left_ == 0) return Fail("more nodes than were announced");
    --left_;
    uint8_t kind = 0;
    if (!Get(kind)) return nullptr;
    if (kind == static_cast<uint8_t>(Query::Kind::kCondition)) return OneCondition();
    if (kind != static_cast<uint8_t>(Query::Kind::kAnd) &&
        kind != static_cast<uint8_t>(Query::Kind::kOr) &&
        kind != static_cast<uint8_t>(Query::Kind::kNot)) {
      return Fail("a node of unknown kind");
    }
    QueryPtr first = Node(depth + 1);
    if (first == nullptr) return nullptr;
    if (kind == static_cast<uint8_t>(Query::Kind::kNot)) return Checked(Query::Not(first));
    QueryPtr second = Node(depth + 1);
    if (second == nullptr) return nullptr;
    return Checked(kind == static_cast<uint8_t>(Query::Kind::kAnd) ? Query::And(first, second)
                                                                   : Query::Or(first, second));
  }

  QueryPtr Checked(QueryPtr query) {
    return query != nullptr ? std::move(query) : Fail("no condition that a query can have");
  }

  QueryPtr OneCondition() {
    uint8_t subject = 0;
    uint8_t comparison = 0;
    uint8_t constants = 0;
    std::string name;
    std::string type;
    Condition condition;
    if (!Get(subject) || !Get(comparison)) return nullptr;
    if (subject > static_cast<uint8_t>(Subject::kLinkName)) return Fail("an unknown subject");
    if (comparison > static_cast<uint8_t>(Comparison::kBetween)) {
      return Fail("an unknown comparison");
    }
    if (!GetString<uint16_t>(name) || !Get(constants)) return nullptr;
    if (constants < 1 || constants > 2) return Fail("a number of constants that no comparison has");
    for (uint8_t i = 0; i < constants; ++i) {
      if (!Constant(condition.values.emplace_back())) return nullptr;
    }
    if (!GetString<uint32_t>(type)) return nullptr;
    condition.comparison = static_cast<Comparison>(comparison);
    return Checked(Query::Of(static_cast<Subject>(subject), std::move(name), std::move(condition),
                             std::move(type)));
  }

  bool Constant(Value& to) {
    const size_t begin = at_;
    uint8_t tag = 0;
    if (!Get(tag)) return false;
    if (tag == kStringTag) return GetString<uint32_t>(to.emplace<std::string>());
    uint64_t first = 0;
    uint64_t second = 0;
    if (tag < static_cast<uint8_t>(NumberForm::kInt64) || tag > kStringTag) {
      Fail("a constant of unknown kind");
      return false;
    }
    if (!Get(first)) return false;
    Number number = 0;
    switch (static_cast<NumberForm>(tag)) {
      case NumberForm::kInt64: number = static_cast<Number>(static_cast<int64_t>(first)); break;
      case NumberForm::kUint64: number = static_cast<Number>(first); break;
      case NumberForm::kDouble: number = static_cast<Number>(std::bit_cast<double>(first)); break;
      default:
        if (!Get(second)) return false;
        number = static_cast<Number>(std::bit_cast<double>(first)) +
                 static_cast<Number>(std::bit_cast<double>(second));
    }
    to = number;
    // The same number has one form, so that equal queries have equal bytes.
    std::string again;
    PutNumber(again, number);
    if (again !=
        std::string_view(reinterpret_cast<const char*>(bytes_.data()) + begin, at_ - begin)) {
      Fail("a number in another form than its own");
      return false;
    }
    return true;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  size_t left_ = 0;  // nodes
  std::string why_;
};

}  // namespace

std::string Encode(const Query& query) {
  std::string bytes;
  bytes.reserve(query.encoded_bytes());
  bytes += kMagic;
  Put(bytes, static_cast<uint32_t>(query.nodes()));
  PutNode(bytes, query);
  return bytes;
}

QueryPtr Decode(std::span<const std::byte> bytes, std::string& why) {
  Reader reader(bytes);
  QueryPtr query = reader.Read();
  if (query == nullptr) why = std::move(reader.why());
  return query;
}

}  // namespace tidelane::predicate
