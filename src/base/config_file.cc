#include "base/config_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/setting_source.h"

namespace tidelane {
namespace {

constexpr size_t kMostBytes = 64 << 10;  // more is not a file of settings

Status Unreadable(const std::string& path, int error) {
  return Status::Failed(error, "read the settings that TIDELANE_CONFIG='" + path + "' names");
}

// A person's file: small, so it is read in one go.
Status ReadAll(const std::string& path, std::string& text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Unreadable(path, errno);
  text.resize(kMostBytes + 1);
  size_t size = 0;
  ssize_t got = 1;
  while (got != 0 && size < text.size()) {
    got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) size += static_cast<size_t>(got);
  }
  const int error = got < 0 ? errno : size > kMostBytes ? EFBIG : 0;
  ::close(fd);
  text.resize(size);
  return error == 0 ? Status() : Unreadable(path, error);
}

std::string_view WithoutComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '#') continue;
    if (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t') return line.substr(0, i);
  }
  return line;
}

}  // namespace

Status LoadConfigText(std::string_view text, const std::string& path, Config& config) {
  SettingText settings;
  for (unsigned number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trim(WithoutComment(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    Status status = settings.Set(config, line, path + ":" + std::to_string(number));
    if (!status.ok()) return status;
  }
  return {};
}

Status LoadConfigFile(const std::string& path, Config& config) {
  std::string text;
  if (Status status = ReadAll(path, text); !status.ok()) return status;
  return LoadConfigText(text, path, config);
}

}  // namespace tidelane
