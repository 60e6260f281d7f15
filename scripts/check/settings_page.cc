/// \file
/// Prints docs/settings.md from the table of settings (base/settings.h); scripts/check/settings.sh
/// compares, or replaces it.
///
/// Invariant: the page says nothing about a setting that the table does not say.
///
/// Thread safety: one thread.
#include <cstdio>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tidelane {
namespace {

constexpr char kIntroduction[] =
    R"(<!-- Made from src/base/settings.cc by `scripts/check/settings.sh --fix`: edit there. -->
# Settings

Tidelane needs no setting. What there is can be said in these places; each overrides the ones above it:

1. the built-in defaults;
2. a file that `TIDELANE_CONFIG` names;
3. the `HDF5_ASYNC_*` variables of the existing asynchronous connector, [where there is something to set](#for-job-scripts-of-the-async-connector);
4. `TIDELANE_*` variables: `TIDELANE_CLOSE=deferred`;
5. the text after the connector's name: `HDF5_VOL_CONNECTOR="tidelane close=deferred;arena=256M"`, also behind
   `under_vol=0;under_info={}` where a script carries that;
6. for the files opened with an access list: the info string that was set on it, then what the functions of [library.md](library.md) put there.

A file of settings has a line for each; `#` at the beginning of a line or after a blank begins a comment:

```
# for the night runs
close = deferred   # nobody reads before morning
arena = 2G
```

In a program, an access list gets an info string by HDF5's own functions:

```c
hid_t connector = H5VLregister_connector_by_name("tidelane", H5P_DEFAULT);
void *info = NULL;
H5VLconnector_str_to_info("close=deferred", connector, &info);
H5Pset_vol(fapl, connector, info);
H5VLfree_connector_info(connector, info);
H5VLclose(connector);
```

It may give what a file can have for itself. What is one for the process is fixed when Tidelane is loaded: an access list can repeat it, but giving
another value there is an error.

An empty value means: not set. A name or a value that does not exist is an error that says where it stands and what comes nearest: HDF5's own error at
each file that the program opens, creates or deletes, and once a line on stderr. No file is opened until it is put right.
`TIDELANE_HDF5_ROOT`, `TIDELANE_TEST_*` and `TIDELANE_BENCH_*` belong to scripts and are left alone. What was in force in a run, and where each value came from, is in its summary.
)";

constexpr char kAliases[] = R"(
## For job scripts of the `async` connector

Its variables are understood; one that is not known here is left alone, and said in the summary.

| variable | what becomes of it |
|---|---|
)";

std::string Anchored(const Setting& setting) {
  const std::string name = "`" + std::string(setting.name) + "`";
  return setting.details.empty() ? name : "[" + name + "](#" + std::string(setting.name) + ")";
}

// "`wait` or `deferred`" for words, plain text for everything else.
std::string Values(const Setting& setting) {
  if (!setting.accepted.empty()) return std::string(setting.accepted);
  std::string text;
  for (const std::string_view word : setting.value.words()) {
    text += (text.empty() ? "`" : ", `") + std::string(word) + "`";
  }
  return text;
}

std::string Default(const Setting& setting) {
  return setting.default_text.empty() ? "`" + DefaultOf(setting) + "`" : DefaultOf(setting);
}

std::string Table(const char* title, Scope scope) {
  std::string text =
      "\n## " + std::string(title) +
      "\n\n| name | variable | values | default | meaning |\n|---|---|---|---|---|\n";
  for (const Setting& setting : Settings()) {
    if (setting.scope != scope) continue;
    text += "| " + Anchored(setting) + " | `" + VariableOf(setting.name) + "` | " +
            Values(setting) + " | " + Default(setting) + " | " + std::string(setting.meaning) +
            " |\n";
  }
  return text;
}

std::string Details() {
  std::string text = "\n## More about some of them\n";
  for (const Setting& setting : Settings()) {
    if (setting.details.empty()) continue;
    text += "\n### " + std::string(setting.name) + "\n\n" + std::string(setting.details) + "\n";
  }
  return text;
}

std::string AliasTable() {
  std::string text = kAliases;
  for (const Alias& alias : Aliases()) {
    text += "| `" + std::string(alias.variable) + "` | " + std::string(alias.meaning) + " |\n";
  }
  return text;
}

std::string Page() {
  return kIntroduction + Table("What a file can have for itself", Scope::kFile) +
         Table("What is one for the process", Scope::kProcess) +
         Table("By variable only", Scope::kVariable) + Details() + AliasTable();
}

}  // namespace
}  // namespace tidelane

int main() {
  std::fputs(tidelane::Page().c_str(), stdout);
  return std::ferror(stdout) != 0 || std::fflush(stdout) != 0;
}
