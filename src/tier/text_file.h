/// \file
/// The small text files of tiers and markers: a first line that says what it is, lines of a name and a value, the last of which may have line breaks.
///
/// Invariant: one that WriteWhole has made is whole, or not there.
/// Thread safety: functions may be called from any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tier/place.h"

namespace tidelane::tier {

inline constexpr std::string_view kFirstLine = "tidelane tier 1";
inline constexpr char kDraftEnd[] = "~";

using Lines = std::map<std::string, std::string, std::less<>>;

/// Values by their names, up to that of `last`: 0 or an errno; EINVAL: it is none.
int ReadLines(int folder, const std::string& name, std::string_view last, Lines& lines);
bool ParseNumber(const std::string& text, uint64_t& number);
/// 0 or an errno.
int WriteText(int file, const std::string& text);
/// In the place, readable by its user alone: it gets its name when it is written. `draft`: a name of nobody else's.
int WriteWhole(const Place& place, const std::string& name, const std::string& draft,
               const std::string& text);
/// Removes what was left by who was killed while it wrote one whose draft ends so.
void RemoveDrafts(const Place& place, std::string_view end);

/// 16 hexadecimal digits that nobody else has drawn.
std::string NewName();
bool IsNewName(std::string_view name);
std::vector<std::string> NamesIn(const Place& place);
/// The names before `end` of those that are drawn, in their order.
std::vector<std::string> NamesBefore(const Place& place, std::string_view end);

}  // namespace tidelane::tier
