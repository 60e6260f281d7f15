// Groups of cases: see session.h.
#include "gpu/real/session.h"

#include <algorithm>
#include <fstream>

namespace tidelane::gpu_real {
namespace {

constexpr hsize_t kChunksEachWay = 3;

Hid creation_list(Layout layout, const std::vector<hsize_t>& extent) {
  Hid list(H5Pcreate(H5P_DATASET_CREATE));
  if (layout == Layout::kCompact) H5Pset_layout(list, H5D_COMPACT);
  if (layout != Layout::kChunked && layout != Layout::kFiltered) return list;
  std::vector<hsize_t> chunk = extent;
  // Not a divisor, so that chunks at the end are partial.
  for (hsize_t& size : chunk) size = std::max<hsize_t>(1, size / kChunksEachWay + 1);
  H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
  if (layout == Layout::kFiltered) {
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 1);
  }
  return list;
}

}  // namespace

Report::Report(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
}
Report::~Report() { std::fclose(file_); }

void Report::line(const char* kind, const std::string& text) {
  std::string one = text;
  std::ranges::replace(one, '\n', ' ');
  std::fprintf(file_, "%s %s\n", kind, one.c_str());
  std::fflush(file_);
}

void Report::begin(const std::string& name) {
  case_ = name;
  line("case", name);
}
void Report::fail(const std::string& what) { line("fail", case_ + ": " + what); }
void Report::skip(const std::string& what) { line("skip", what); }
void Report::tell_bytes(uint64_t down, uint64_t up) {
  line("down", std::to_string(down));
  line("up", std::to_string(up));
}

Told told(const std::string& path) {
  Told all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    const std::string kind = line.substr(0, space);
    const std::string text = line.substr(std::min(space, line.size() - 1) + 1);
    if (kind == "case") {
      ++all.cases;
      all.last = text;
    }
    if (kind == "fail") all.failures.push_back(text);
    if (kind == "skip") all.skipped.push_back(text);
    if (kind == "down") all.down = std::stoull(text);
    if (kind == "up") all.up = std::stoull(text);
  }
  return all;
}

const char* name_of(Layout layout) {
  static constexpr const char* kNames[] = {"contiguous", "chunked", "gzip", "compact"};
  return kNames[static_cast<int>(layout)];
}

void call(const char* what, const std::function<herr_t()>& function) {
  Context before = nullptr;
  Context after = nullptr;
  check(cuda().CtxGetCurrent(&before), "cuCtxGetCurrent");
  if (function() < 0) throw std::runtime_error(std::string(what) + " failed: " + error_text());
  check(cuda().CtxGetCurrent(&after), "cuCtxGetCurrent");
  if (before != after)
    throw std::runtime_error(std::string(what) + " left another context current");
}

void same(const char* what, const Bytes& found, const Bytes& expected, size_t element) {
  const std::string where = difference(found, expected, element);
  if (!where.empty()) throw std::runtime_error(std::string(what) + ": " + where);
}

Session::Session(const std::string& folder, const std::string& group)
    : report_(folder + "/" + group + ".report"),
      path_(folder + "/" + group + ".h5"),
      file_(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {
  if (!file_.valid()) throw std::runtime_error("cannot create " + path_ + ": " + error_text());
}

size_t Session::add(Model model) {
  models_.push_back(std::move(model));
  return models_.size() - 1;
}

void Session::attempt(const std::string& name, const std::function<void()>& run) {
  report_.begin(name);
  try {
    run();
  } catch (const Unavailable& unavailable) {
    report_.skip(name + ": " + unavailable.what());
  } catch (const std::exception& failure) {
    report_.fail(failure.what());
  }
}

Target Session::create(const std::string& name, Layout layout, const Selection& selection,
                       Type type) {
  const std::vector<hsize_t>& extent = selection.file.extent;
  const Hid space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  const Hid list = creation_list(layout, extent);
  Target target{
      &selection,
      type,
      Hid(H5Dcreate2(file_, name.c_str(), file_type(type), space, H5P_DEFAULT, list, H5P_DEFAULT)),
      memory_type(type),
      selection.memory.space(),
      selection.file.space()};
  if (!target.dataset.valid()) throw std::runtime_error("H5Dcreate2: " + error_text());
  const size_t count = selection.file.elements();
  target.model =
      add({.name = name, .type = type, .count = count, .list = std::vector<int32_t>(count)});
  return target;
}

Target Session::open(size_t model, const Selection& selection) {
  const Model& from = models_[model];
  Target target{&selection,
                from.type,
                Hid(H5Dopen2(file_, from.name.c_str(), H5P_DEFAULT)),
                memory_type(from.type),
                selection.memory.space(),
                selection.file.space()};
  if (!target.dataset.valid()) throw std::runtime_error("H5Dopen2: " + error_text());
  target.model = model;
  return target;
}

void Session::wrote(const Target& target, uint32_t seed) {
  const Selection& selection = *target.selection;
  std::vector<int32_t>& list = models_[target.model].list;
  for (size_t i = 0; i < selection.file.at.size(); ++i)
    list[selection.file.at[i]] = number(seed, selection.memory.at[i]);
}

void Session::count_down(const Memory& memory, uint64_t bytes) {
  if (memory.is_on_device()) down_ += bytes;
}
void Session::count_up(const Memory& memory, uint64_t bytes) {
  if (memory.is_on_device()) up_ += bytes;
}

void Session::write(Target& target, Memory& memory, uint32_t seed, hid_t list) {
  call("H5Dwrite", [&] {
    return H5Dwrite(target.dataset, target.memory_type, target.in_memory(), target.in_file(), list,
                    memory.get());
  });
  memory.spoil();
  count_down(memory, target.selected_bytes());
  wrote(target, seed);
}

Bytes Session::expected(const Target& target, uint32_t seed) {
  const Selection& selection = *target.selection;
  Bytes bytes = target.image(seed);
  const std::vector<int32_t>& list = models_[target.model].list;
  for (size_t i = 0; i < selection.file.at.size(); ++i) {
    store(target.type, list[selection.file.at[i]],
          bytes.data() + selection.memory.at[i] * size_of(target.type));
  }
  return bytes;
}

void Session::read(const Target& target, Memory& memory, uint32_t seed, hid_t list) {
  memory.use(target.memory_bytes());
  memory.put(target.image(seed));
  call("H5Dread", [&] {
    return H5Dread(target.dataset, target.memory_type, target.in_memory(), target.in_file(), list,
                   memory.get());
  });
  count_up(memory, target.selected_bytes());
  same("memory that was read into", memory.now(), expected(target, seed), size_of(target.type));
}

void Session::reopen() {
  if (file_.reset() < 0) throw std::runtime_error("H5Fclose: " + error_text());
  file_ = Hid(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file_.valid()) throw std::runtime_error("H5Fopen: " + error_text());
}

void Session::compare_all() {
  for (const Model& model : models_) {
    report_.begin(model.name + ", read to the host");
    const std::string where = compare(file_, model);
    if (!where.empty()) report_.fail(where);
  }
}

void Session::finish() {
  if (file_.reset() < 0) report_.fail("H5Fclose: " + error_text());
  save(models_, path_ + ".models");
  report_.tell_bytes(down_, up_);
}

}  // namespace tidelane::gpu_real
