// One group of cases in a process of its own: its file, what the file should hold, and what it found.
//
// Every case makes a dataset (or attribute) and remembers as a Model what it should hold. At the end the file is closed, opened again
// with the plugin, and compared; the models are left for another process, which compares natively.
//
// Invariant: what the group says is in its report as soon as it is known, so that a crash loses nothing.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/real/memory.h"
#include "gpu/real/selections.h"
#include "gpu/real/values.h"

namespace tidelane::gpu_real {

// What happened, as lines of a file: "case NAME", "fail WHAT", "skip WHAT", "down BYTES", "up BYTES".
class Report {
 public:
  explicit Report(const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void begin(const std::string& name);
  void fail(const std::string& what);  // of the case that has begun
  void skip(const std::string& what);
  // Bytes that went between a device and HDF5, so far.
  void tell_bytes(uint64_t down, uint64_t up);

 private:
  void line(const char* kind, const std::string& text);

  std::FILE* const file_;
  std::string case_;
};

struct Told {
  size_t cases = 0;
  std::string last;
  std::vector<std::string> failures;
  std::vector<std::string> skipped;
  uint64_t down = 0;
  uint64_t up = 0;
};
Told told(const std::string& path);

enum class Layout { kContiguous, kChunked, kFiltered, kCompact };
inline constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kChunked, Layout::kFiltered,
                                      Layout::kCompact};
const char* name_of(Layout layout);

// A dataset, and transfers between its selected elements and memory.
struct Target {
  const Selection* selection = nullptr;
  Type type = Type::kFloat;
  Hid dataset;
  Hid memory_type;
  Hid memory_space;
  Hid file_space;
  size_t model = 0;

  hid_t in_memory() const { return memory_space.valid() ? memory_space.get() : H5S_ALL; }
  hid_t in_file() const { return file_space.valid() ? file_space.get() : H5S_ALL; }
  size_t memory_bytes() const { return selection->memory.elements() * size_of(type); }
  size_t selected_bytes() const { return selection->memory.at.size() * size_of(type); }
  Bytes image(uint32_t seed) const {
    return gpu_real::image(type, seed, selection->memory.elements());
  }
};

class Session {
 public:
  Session(const std::string& folder, const std::string& group);

  Report& report() { return report_; }
  hid_t file() const { return file_; }
  const std::string& path() const { return path_; }
  Model& model(size_t index) { return models_[index]; }
  size_t add(Model model);

  // Runs it; what it throws is a failure of the case, or where something is unavailable a skip.
  void attempt(const std::string& name, const std::function<void()>& run);

  Target create(const std::string& name, Layout layout, const Selection& selection, Type type);
  Target open(size_t model, const Selection& selection);
  // The memory holds the target's image of that seed. On the device, it is overwritten as soon as the call has returned.
  void write(Target& target, Memory& memory, uint32_t seed, hid_t list = H5P_DEFAULT);
  // The dataset holds what of the image is selected.
  void wrote(const Target& target, uint32_t seed);
  // Reads into memory with that image, and compares all of the memory.
  void read(const Target& target, Memory& memory, uint32_t seed, hid_t list = H5P_DEFAULT);
  // What the memory should be after that.
  Bytes expected(const Target& target, uint32_t seed);
  void count_down(const Memory& memory, uint64_t bytes);
  void count_up(const Memory& memory, uint64_t bytes);

  void reopen();
  // Compares every model, natively or not as the process is.
  void compare_all();
  void finish();

 private:
  Report report_;
  const std::string path_;
  Hid file_;
  std::vector<Model> models_;
  uint64_t down_ = 0;
  uint64_t up_ = 0;
};

// A call with device memory leaves the thread's context as it was; throws where it does not, or where HDF5 says that it failed.
void call(const char* what, const std::function<herr_t()>& function);
// Throws where `found` is not as expected.
void same(const char* what, const Bytes& found, const Bytes& expected, size_t element);

}  // namespace tidelane::gpu_real
