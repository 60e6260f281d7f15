#include "tools/find_hdf5.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tools/locate.h"
#include "tools/process.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

constexpr double kListSeconds = 20;
constexpr double kImportSeconds = 60;

// Prints the libraries that importing a package brought, and the package's name.
constexpr char kImport[] = R"(
import importlib, re, sys
for name in ("h5py", "netCDF4", "tables"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    for line in open("/proc/self/maps"):
        path = line.rstrip("\n").split(None, 5)[5:]
        if path and "libhdf5" in path[0]:
            print(name + "\t" + path[0])
)";

// "libhdf5.so.310", "libhdf5_serial.so.103", "libhdf5-1f2e3d.so": not the high-level, C++ and
// Fortran libraries.
bool IsHdf5(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (!name.starts_with("libhdf5") || name.find(".so") == std::string::npos) return false;
  for (const char* other : {"_hl", "_cpp", "_fortran", "_tools", "_f90", "_java"}) {
    if (name.find(other) != std::string::npos) return false;
  }
  return true;
}

std::string InFolder(const std::string& folder) {
  for (const char* name :
       {"libhdf5.so", "libhdf5_serial.so", "libhdf5_openmpi.so", "libhdf5_mpich.so"}) {
    if (IsFile(folder + "/" + name)) return folder + "/" + name;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (IsHdf5(entry.path().string()) && entry.is_regular_file(error)) return entry.path().string();
  }
  return {};
}

std::string UnderPrefix(const std::string& prefix) {
  for (const char* below : {"/lib", "/lib64", ""}) {
    if (std::string found = InFolder(prefix + below); !found.empty()) return found;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(prefix + "/lib", error)) {
    for (const char* below : {"", "/hdf5/serial", "/hdf5/openmpi", "/hdf5/mpich"}) {
      const std::string folder = entry.path().string();
      if (folder.find("-linux-") == std::string::npos) continue;
      if (std::string found = InFolder(folder + below); !found.empty()) return found;
    }
  }
  return {};
}

// What an ELF file asks to be started by (the dynamic linker); empty if it is not dynamic, nothing
// if it is no ELF file of this machine's kind.
std::optional<std::string> Interpreter(const std::string& text) {
  Elf64_Ehdr header;
  if (text.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, text.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    const uint64_t at = header.e_phoff + uint64_t{i} * sizeof part;
    if (at > text.size() || text.size() - at < sizeof part) break;
    std::memcpy(&part, text.data() + at, sizeof part);
    if (part.p_type != PT_INTERP) continue;
    if (part.p_offset > text.size() || text.size() - part.p_offset < part.p_filesz) break;
    return std::string(text.data() + part.p_offset,
                       strnlen(text.data() + part.p_offset, part.p_filesz));
  }
  return "";
}

FoundHdf5 OfPython(const std::string& python) {
  const Ended ended = RunAndRead({python, "-c", kImport}, {"HDF5_VOL_CONNECTOR"}, kImportSeconds);
  if (!ended.ok()) return {"", python + " " + ended.HowInWords() + " while it imported h5py"};
  for (const std::string& line : SplitAt(ended.output, '\n')) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos && IsHdf5(line.substr(tab + 1))) {
      return {line.substr(tab + 1), "of " + line.substr(0, tab) + " in " + python};
    }
  }
  return {"", python + " has no h5py, netCDF4 or tables"};
}

FoundHdf5 OfElf(const std::string& program, const std::string& interpreter) {
  const Ended ended = RunAndRead({interpreter, "--list", program}, {}, kListSeconds);
  for (const std::string& line : SplitAt(ended.output, '\n')) {
    const size_t arrow = line.find("=> ");
    if (arrow == std::string::npos) continue;
    const std::string name = line.substr(line.find_first_not_of(" \t"));
    const std::string path = line.substr(arrow + 3, line.rfind(" (") - arrow - 3);
    if (!IsHdf5(name.substr(0, name.find(' ')))) continue;
    if (path.starts_with("not found")) return {"", "its " + name + ": LD_LIBRARY_PATH is lacking"};
    return {path, "of " + program};
  }
  return {"", program +
                  " is not linked to a shared libhdf5: either it starts another program that "
                  "is, or HDF5 is inside it and cannot load plugins"};
}

bool IsPython(const std::string& program) {
  return fs::path(program).filename().string().starts_with("python");
}

// The program that runs a script: "#!/usr/bin/env python3".
std::string InterpreterOfScript(const std::string& text) {
  if (!text.starts_with("#!")) return {};
  std::vector<std::string> words;
  for (const std::string& word : SplitAt(text.substr(2, text.find('\n') - 2), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  if (words.empty()) return {};
  const bool env = fs::path(words[0]).filename() == "env";
  return env && words.size() > 1 ? FindProgram(words.back()) : words[0];
}

}  // namespace

FoundHdf5 Hdf5At(const std::string& place) {
  if (IsFile(place)) return {place, "as given"};
  if (!IsFolder(place)) return {"", place + " does not exist"};
  const std::string found = UnderPrefix(place);
  return {found, found.empty() ? "no libhdf5.so under " + place : "under " + place};
}

FoundHdf5 Hdf5Of(const std::string& program) {
  const std::string path = FindProgram(program);
  if (path.empty()) return {"", "there is no program '" + program + "'"};
  if (IsPython(path)) return OfPython(path);
  std::string text;
  if (!ReadWhole(path, text)) return {"", path + " cannot be read"};
  if (const auto interpreter = Interpreter(text)) {
    if (!interpreter->empty()) return OfElf(path, *interpreter);
    return {"", path + " is linked statically: it cannot load plugins"};
  }
  const std::string script = InterpreterOfScript(text);
  if (!script.empty() && IsPython(script)) return OfPython(script);
  return {"", path + " is no program that can be looked into: name the one that uses HDF5"};
}

FoundHdf5 Hdf5OfThisMachine() {
  for (const char* name : {"HDF5_ROOT", "TIDELANE_HDF5_ROOT"}) {
    const char* const root = std::getenv(name);
    if (root == nullptr || *root == '\0') continue;
    FoundHdf5 found = Hdf5At(root);
    if (!found.path.empty()) found.how = std::string("by ") + name;
    return found;
  }
  for (const char* program : {"h5dump", "h5ls"}) {
    if (FindProgram(program).empty()) continue;
    if (FoundHdf5 found = Hdf5Of(program); !found.path.empty()) return found;
  }
  for (const char* prefix : {"/usr/local", "/usr/local/hdf5", "/usr"}) {
    if (std::string found = UnderPrefix(prefix); !found.empty()) return {found, "installed"};
  }
  for (const char* python : {"python3", "python"}) {
    if (FindProgram(python).empty()) continue;
    if (FoundHdf5 found = Hdf5Of(python); !found.path.empty()) return found;
  }
  return {"", "neither installed nor in Python's h5py"};
}

std::string WhyNotLoaded(const std::vector<std::string>& command) {
  const FoundHdf5 found = Hdf5Of(command[0]);
  if (found.path.empty()) {
    return "Of its HDF5: " + found.how + ". tidelane check -- PROGRAM looks into one";
  }
  return "It uses " + found.path + "; tidelane check -- " + command[0] +
         " says whether that can load plugins";
}

}  // namespace tidelane::tools
