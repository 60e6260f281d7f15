#include "checkpoint/spans.h"

#include <nlohmann/json.hpp>

namespace tidelane::checkpoint {

const char* name_of(Class c) {
  static constexpr std::array<const char*, kClassCount> kNames = {
      "compute", "create", "write", "flush", "close", "file_close", "wait", "shutdown"};
  return kNames[static_cast<size_t>(c)];
}

nlohmann::json Spans::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const Span& s : spans_) {
    all.push_back({{"class", name_of(s.c)},
                   {"call", s.call},
                   {"step", s.step},
                   {"begin_us", s.begin_us},
                   {"end_us", s.end_us}});
  }
  return all;
}

}  // namespace tidelane::checkpoint
