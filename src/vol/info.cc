#include "vol/info.h"

#include <cstring>
#include <new>
#include <string_view>

#include "h5/error.h"

namespace tidelane::vol {

namespace {

constexpr char kText[] = "under_vol=0;under_info={}";

void* Refuse(Instance& instance) {
  h5::PushError(instance.hdf5(),
                "Tidelane stacks on the native connector only: its info must be empty or "
                "\"under_vol=0;under_info={}\"");
  return nullptr;
}

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool IsNativeInfo(const char* text) {
  std::string_view rest = text == nullptr ? std::string_view() : std::string_view(text);
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!rest.empty() && blank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && blank(rest.back())) rest.remove_suffix(1);
  if (rest.empty()) return true;
  if (!Consume(rest, "under_vol=0")) return false;
  if (rest.empty()) return true;
  if (!Consume(rest, ";")) return false;
  return rest.empty() || rest == "under_info={}" || rest == "under_info={};";
}

void* InfoCopy(Instance& instance, const void* info) {
  const auto* from = static_cast<const Info*>(info);
  H5VL_class_value_t value = -1;
  if (from->under_vol_info != nullptr ||
      instance.hdf5().VLget_value(from->under_vol_id, &value) < 0 || value != h5::kNativeValue) {
    return Refuse(instance);
  }
  auto* copy = new (std::nothrow) Info(*from);
  if (copy != nullptr) instance.hdf5().Iinc_ref(copy->under_vol_id);
  return copy;
}

herr_t InfoCompare(Instance&, int* order, const void*, const void*) {
  *order = 0;  // all of them say the same
  return 0;
}

herr_t InfoFree(Instance& instance, void* info) {
  const h5::KeepErrorStack keep(instance.hdf5());
  instance.hdf5().Idec_ref(static_cast<Info*>(info)->under_vol_id);
  delete static_cast<Info*>(info);
  return 0;
}

herr_t InfoToString(Instance& instance, const void*, char** text) {
  *text = static_cast<char*>(instance.hdf5().allocate_memory(sizeof kText, false));
  if (*text == nullptr) return -1;
  std::memcpy(*text, kText, sizeof kText);
  return 0;
}

herr_t InfoFromString(Instance& instance, const char* text, void** info) {
  *info = nullptr;
  if (!IsNativeInfo(text)) {
    Refuse(instance);
    return -1;
  }
  auto* native = new (std::nothrow) Info{instance.hdf5().AcquireNativeId(), nullptr};
  *info = native;
  return native == nullptr || native->under_vol_id < 0 ? -1 : 0;
}

}  // namespace tidelane::vol
