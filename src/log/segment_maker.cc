#include "log/segment_maker.h"

#include <cerrno>
#include <string>

#include "extent/test_hooks.h"

namespace tidelane::log {

int SegmentMaker::Make(uint64_t number, std::unique_ptr<Device>& made) {
  Folder& folder = *parts_.place.folder;
  const std::string name = SegmentName(parts_.place.name, number);
  int error = folder.Make(name, made);
  if (error == EEXIST) {
    error = left_.MakeRoomFor(name);
    if (error == 0) error = folder.Make(name, made);
  }
  if (error == 0 && file_.syncs() && !MutationEnabled("log_folder_sync")) error = folder.Sync();
  return error;
}

// The one that was moved, if nobody reads it any more, or a new one.
int SegmentMaker::Next(SegmentHeader& header, std::shared_ptr<Segment>& segment) {
  std::unique_ptr<Device> made;
  if (spare_ != nullptr && spare_.use_count() == 1) {
    header.number = spare_->header().number + 2;
    made = spare_->Release();
    spare_ = nullptr;
  } else {
    Forget(true);
    header.number = number_ + 1;
    if (const int error = Make(header.number, made); error != 0) return error;
  }
  segment = std::make_shared<Segment>(SegmentName(parts_.place.name, header.number),
                                      std::move(made), header);
  return segment->Begin(file_.syncs());
}

void SegmentMaker::Remove(Segment& segment) {
  Folder& folder = *parts_.place.folder;
  if (folder.Remove(segment.name(), segment.file()) == 0) return;
  static_cast<void>(folder.Remove(AsideName(segment.name(), segment.id()), segment.file()));
}

void SegmentMaker::End(Segment& last) {
  Forget(true);
  Remove(last);
}

void SegmentMaker::Forget(bool removes) {
  if (removes && spare_ != nullptr) Remove(*spare_);
  spare_ = nullptr;
}

}  // namespace tidelane::log
