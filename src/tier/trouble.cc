#include "tier/trouble.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <system_error>

#include "tier/text_file.h"

namespace tidelane::tier {
namespace {

constexpr char kEnd[] = ".why";
constexpr size_t kMostShown = 500;
constexpr char kHex[] = "0123456789abcdef";

// Terminals take more than printable characters as orders.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kMostShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte <= '~') {
      line += c;
    } else {
      line += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    }
  }
  return line;
}

std::string NameOf(const std::string& entry) { return entry + kEnd; }

}  // namespace

bool Trouble::Read(const Place& place, const std::string& entry, Trouble& trouble) {
  Lines lines;
  uint64_t since = 0;
  if (ReadLines(place.folder.get(), NameOf(entry), "reason", lines) != 0 ||
      !ParseNumber(lines["since"], since) || !ParseNumber(lines["bytes"], trouble.bytes))
    return false;
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  trouble.since = static_cast<int64_t>(std::min(since, now));
  trouble.reason = OneLine(lines["reason"]);
  return true;
}

void Trouble::Tell(const Place& place, const std::string& entry, const std::string& reason,
                   uint64_t bytes) {
  Trouble told;
  if (Read(place, entry, told) && told.reason == OneLine(reason)) return;
  std::string text(kFirstLine);
  text += "\nsince " + std::to_string(std::time(nullptr));
  text += "\nbytes " + std::to_string(bytes);
  text += "\nreason " + reason + '\n';
  // Somebody may tell it by hand meanwhile: each has a draft of its own.
  const std::string draft = NameOf(NewName()) + kDraftEnd;
  static_cast<void>(WriteWhole(place, NameOf(entry), draft, text));
}

void Trouble::Remove(const Place& place, const std::string& entry) {
  unlinkat(place.folder.get(), NameOf(entry).c_str(), 0);
}

void Trouble::RemoveStray(const Place& place, const std::vector<std::string>& entries) {
  for (const std::string& name : NamesBefore(place, kEnd)) {
    if (!std::ranges::binary_search(entries, name)) Remove(place, name);
  }
}

void Trouble::RemoveDrafts(const Place& place) {
  tier::RemoveDrafts(place, std::string(kEnd) + kDraftEnd);
}

std::string Trouble::ReasonOf(const Status& status) {
  const bool is_word = status.operation().find(' ') == std::string_view::npos;
  return is_word ? std::generic_category().message(status.code()) : status.Message();
}

int64_t Trouble::age() const { return std::max<int64_t>(std::time(nullptr) - since, 0); }

}  // namespace tidelane::tier
