#include "vol/device_buffers.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/counters.h"
#include "base/overlap.h"
#include "base/trace.h"
#include "buffer/arena.h"
#include "buffer/loan.h"
#include "buffer/staging.h"
#include "engine/engine.h"
#include "gpu/copies.h"
#include "h5/driver.h"
#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/call_inside.h"
#include "vol/chunked_dataset.h"
#include "vol/find_file.h"
#include "vol/selection_io_choice.h"
#include "vol/stretches.h"

namespace tidelane::vol {

namespace {

constexpr int kComplexNumber = 11;  // H5T_COMPLEX, since HDF5 2.0
constexpr uint64_t kSmallestHeld =
    StagingMemory::kUnit;  // less is copied: it would keep a whole unit
// The questions take as long as copying so many bytes, when nothing that they look at is in the processor's caches (30 us).
constexpr uint64_t kWorthAsking = uint64_t{2} << 20;
static_assert(kWorthAsking > kSieveWindow);
// So many copies of small runs take longer than one of all that lies between them,
constexpr size_t kManyRuns = 64;
constexpr uint64_t kDense = 8;  // if that is not so many times as much.

class PinBy final : public Pinner {
 public:
  explicit PinBy(gpu::Runtime& runtime) : runtime_(runtime) {}
  int Pin(std::byte* begin, uint64_t size) override { return runtime_.Pin(begin, size); }

 private:
  gpu::Runtime& runtime_;
};

// As HDF5's own errors name it; "" where it has no name any more.
std::string NameOf(LibraryState& library, void* dataset) {
  const h5::KeepErrorStack keep(library.hdf5());
  H5VL_loc_params_t self{};
  self.type = H5VL_OBJECT_BY_SELF;
  self.obj_type = H5I_DATASET;
  std::string name(256, '\0');
  size_t length = 0;
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_NAME;
  get.args.get_name.buf_size = name.size();
  get.args.get_name.buf = name.data();
  get.args.get_name.name_len = &length;
  const auto native = library.hdf5().native().object_cls.get;
  if (native(dataset, &self, &get, library.default_dxpl, nullptr) < 0) return {};
  name.resize(std::min(length, name.size() - 1));
  return name;
}

bool IsSpace(h5::Library& hdf5, hid_t id) { return hdf5.Iget_type(id) == H5I_DATASPACE; }

bool HasMembers(h5::Library& hdf5, hid_t type) {
  return hdf5.Tdetect_class(type, H5T_COMPOUND) > 0;
}

// Whether it has storage, in one piece. HDF5 gives "nowhere" as an address, too, that the user block is added to.
bool HasPlace(LibraryState& library, void* dataset, hid_t dxpl) {
  const std::shared_ptr<File> file = FileOf(library, dataset, H5I_DATASET);
  return file != nullptr && h5::Driver().above(library.slot, *file).base_address == 0 &&
         IsStoredInOnePiece(library, dataset, dxpl);
}

// Whether HDF5 may leave bytes of a buffer as they are: where nothing is stored, and nothing says what is there instead.
bool MayLeaveBytes(LibraryState& library, void* dataset, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  if (HasPlace(library, dataset, dxpl)) return false;
  const DatasetFacts& facts = FactsOf(library, dataset, dxpl);
  // The sources of a virtual dataset have fill values of their own.
  return facts.layout == H5D_LAYOUT_ERROR || facts.layout == H5D_VIRTUAL || !facts.fills;
}

}  // namespace

struct StagedRows::Row {
  void* dataset = nullptr;      // nullptr after the call, when it may have been closed:
  std::string name;             // then what it was called is known here,
  std::string path;             // and its file's name
  std::byte* device = nullptr;  // what the program gave
  gpu::Memory memory;
  std::vector<gpu::PlacedBox> boxes;
  uint64_t bytes = 0;
  uint64_t before =
      0;  // what HDF5 gets begins so many bytes before `host`, and is never looked at there
  Slab* slab = nullptr;
  std::byte* host = nullptr;
  h5::OwnedId space;  // of the memory that HDF5 gets; not valid: the program's
  std::unique_ptr<gpu::Copies> copies;

  Row() = default;
  ~Row() {
    copies.reset();  // before the memory goes
    if (slab != nullptr) Arena::Unref(slab);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  std::byte* buffer() const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(host) - before);
  }
};

namespace {

uint64_t EndOf(const gpu::PlacedBox& placed) {
  const gpu::Box& box = placed.box;
  return placed.at + ((box.depth - 1) * box.slice + box.height - 1) * box.pitch + box.width;
}

constexpr unsigned kPatience = 400;  // looks at staging memory that stays full, 5 ms each

}  // namespace

uint64_t MostStaged() { return Engine::Get().staging().cap() / 4; }

Memories MemoriesOf(size_t count, const void* const buffers[]) {
  Memories memories;
  for (size_t i = 0; i < count; ++i) {
    std::optional<gpu::Memory> found = gpu::Find(buffers[i]);
    if (!found.has_value()) continue;
    memories.resize(count);
    memories[i] = found;
  }
  return memories;
}

StagedRows::StagedRows(LibraryState& library, hid_t dxpl, gpu::Stream after)
    : library_(library), dxpl_(dxpl), after_(after) {}

StagedRows::~StagedRows() {
  const h5::KeepErrorStack keep(library_.hdf5());  // closing spaces forgets it
  rows_.clear();
}

// What the program has put into its stream before is no part of the copy.
void StagedRows::Waited(const Row& row, uint64_t ns) {
  copy_ns_ += std::min(ns, row.copies->TakeDeviceNs());
  Count(Counter::kGpuCopyNs, ns);
}

// Told at the end: closing an id forgets what is on the error stack.
bool StagedRows::Fails(const Row& row, const char* what, const std::string& why) {
  failure_ = std::string(what) + " dataset '" +
             (row.dataset == nullptr ? row.name : NameOf(library_, row.dataset)) +
             "' with a buffer in device memory: " + why;
  path_ = row.path;
  return false;
}

void StagedRows::Tell() const {
  if (!failure_.empty()) h5::PushError(library_.hdf5(), failure_.c_str());
}

Status StagedRows::failure() const {
  constexpr std::string_view kCannot = "cannot ";  // which a status says by itself
  std::string_view operation = failure_;
  if (operation.starts_with(kCannot)) operation.remove_prefix(kCannot.size());
  return Status::Failed(EIO, std::string(operation) + "; file").At(path_, 0, 0);
}

// What is selected of the program's buffer, in the order in which HDF5 goes through it.
bool StagedRows::FindRuns(Row& row, const Writing& writing, hid_t space, Gaps gaps) {
  h5::Library& hdf5 = library_.hdf5();
  const uint64_t element = hdf5.Tget_size(writing.memory_type);
  // What HDF5 will refuse is not looked at.
  const hssize_t selected = hdf5.Sselect_valid(space) > 0 ? hdf5.Sget_select_npoints(space) : 0;
  const auto points = static_cast<uint64_t>(std::max<hssize_t>(0, selected));
  row.bytes = points * element;
  if (points == 0) return true;
  if (writing.memory_space == kBlockSpace || hdf5.Sget_select_type(space) == H5S_SEL_ALL) {
    row.boxes = {{0, {.width = row.bytes}}};
    return true;
  }
  gpu::Boxes boxes;
  Stretches stretches(hdf5, space, element);
  while (stretches.More()) {
    boxes.Add(stretches.at * element, stretches.count * element);
    stretches.Skip(stretches.count);
  }
  row.boxes = boxes.Finish();
  if (boxes.bytes() != row.bytes) return false;
  if (gaps == Gaps::kMayBeCopied && row.boxes.size() > kManyRuns) {
    const uint64_t begin = std::ranges::min(row.boxes, {}, &gpu::PlacedBox::at).at;
    const uint64_t end = EndOf(std::ranges::max(row.boxes, {}, EndOf));
    if (end - begin <= std::min(kDense * row.bytes, MostStaged())) {
      row.bytes = end - begin;
      row.boxes = {{begin, {.width = row.bytes}}};
    }
  }
  if (row.boxes.size() == 1 && row.boxes[0].box.IsLine()) {
    row.before = row.boxes[0].at;
    return true;
  }
  const std::optional<SelectedBox> box = BoxIn(hdf5, space);
  const hsize_t all = points;
  row.space = box.has_value()
                  ? h5::OwnedId(hdf5, hdf5.Screate_simple(box->rank, box->box.size.data(), nullptr))
                  : h5::OwnedId(hdf5, hdf5.Screate_simple(1, &all, nullptr));
  return row.space.valid();
}

// In the context of its device. Pinned memory, as soon as lanes have stored, or devices have got, enough of what lies there; else any, if that will do.
bool StagedRows::Acquire(Row& row, Room room) {
  Engine& engine = Engine::Get();
  StagingMemory& staging = engine.staging();
  PinBy pinner(*row.memory.runtime);
  row.slab = staging.TryAcquire(row.bytes, pinner);
  if (row.slab == nullptr && row.bytes <= staging.cap() && staging.in_use() != 0) {
    const Waiting waiting(Wait::kArena);
    for (unsigned idle = 0; idle < kPatience && row.slab == nullptr;) {
      engine.RelieveArena();
      // Reads that go on after their calls have memory there, too, and a device takes its time while lanes are idle.
      const unsigned step = library_.requests.Advance() ? 1 : kPatience / 2;
      while (!engine.lanes().threaded() && engine.lanes().RunQueued()) {
      }
      const bool was_idle = engine.lanes().idle();
      staging.AwaitReturn(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
      row.slab = staging.TryAcquire(row.bytes, pinner);
      idle = was_idle && engine.lanes().idle() ? idle + step : 0;
    }
  }
  if (row.slab == nullptr && room == Room::kStaging) {
    lacks_room_ = true;
    return false;
  }
  if (row.slab == nullptr) {
    Count(Fallback::kGpuUnpinned);
    row.slab = Keep(row.bytes);
  }
  if (row.slab == nullptr) throw std::bad_alloc();
  row.host = row.slab->data;
  return true;
}

bool StagedRows::Make(Row& row, const Writing& writing, Gaps gaps, Room room) {
  h5::Library& hdf5 = library_.hdf5();
  row.dataset = writing.dataset;
  row.device = static_cast<std::byte*>(const_cast<void*>(writing.buffer));
  constexpr const char* kCannot = "cannot transfer";
  if (gpu::IsForked()) return Fails(row, kCannot, row.memory.runtime->Describe(0));
  if (!IsPlainType(hdf5, writing.memory_type) &&
      hdf5.Tget_class(writing.memory_type) != kComplexNumber) {
    return Fails(row, kCannot,
                 "its elements would be pointers to host memory (variable length or references)");
  }
  hid_t space = writing.memory_space;
  h5::OwnedId own;
  if (space == h5::kDefault || space == kBlockSpace) space = writing.file_space;
  if (space == h5::kDefault) {
    own = AskDataset(library_, writing.dataset, H5VL_DATASET_GET_SPACE, dxpl_);
    space = own.get();
  }
  if (!IsSpace(hdf5, space))
    return Fails(row, kCannot, "its memory is described by no dataspace (H5S_PLIST)");
  if (!FindRuns(row, writing, space, gaps))
    return Fails(row, kCannot, "HDF5 does not say where its elements lie in memory");
  if (row.bytes == 0) return true;
  const gpu::Entered entered(row.memory);
  if (entered.error() != 0)
    return Fails(row, kCannot, row.memory.runtime->Describe(entered.error()));
  return Acquire(row, room);
}

bool StagedRows::Stage(const Memories& memories, const Writes& writes) {
  for (size_t i = 0; i < writes.count; ++i) {
    const Writing writing = At(writes, i);
    const std::optional<gpu::Memory>& memory = memories[i];
    if (!memory.has_value()) {
      for_writes_.Add(writes, i);
      continue;
    }
    rows_.push_back(std::make_unique<Row>());
    Row& row = *rows_.back();
    row.memory = *memory;
    if (!Make(row, writing, Gaps::kMayBeCopied, Room::kAny)) return false;
    if (row.bytes == 0) {
      for_writes_.Add(writes, i);
      continue;
    }
    row.copies = std::make_unique<gpu::Copies>(row.memory, after_, row.bytes);
    row.copies->Down(row.host, row.device, row.boxes, StagingMemory::kGranule);
    if (row.copies->error() != 0) return Fails(row, "cannot write", row.copies->Describe());
    Count(Counter::kGpuBytesDown, row.bytes);
    bytes_ += row.bytes;
    const hid_t space = row.space.valid() ? row.space.get() : writing.memory_space;
    for_writes_.Add(writes, i, space, row.buffer());
  }
  writes_ = for_writes_.rows();
  return true;
}

bool StagedRows::Stage(const Memories& memories, const Transfers<void*>& reads, Room room) {
  for (size_t i = 0; i < reads.count; ++i) {
    const Writing reading{reads.datasets[i], reads.memory_types[i], reads.memory_spaces[i],
                          reads.file_spaces[i], reads.buffers[i]};
    const std::optional<gpu::Memory>& memory = memories[i];
    if (!memory.has_value()) {
      for_reads_.Add(reads, i);
      continue;
    }
    rows_.push_back(std::make_unique<Row>());
    Row& row = *rows_.back();
    row.memory = *memory;
    if (!Make(row, reading, Gaps::kStay, room)) return false;
    if (row.bytes == 0) {
      for_reads_.Add(reads, i);
      continue;
    }
    if (HasMembers(library_.hdf5(), reading.memory_type) ||
        MayLeaveBytes(library_, reading.dataset, dxpl_)) {
      row.copies = std::make_unique<gpu::Copies>(row.memory, after_, row.bytes);
      row.copies->Down(row.host, row.device, row.boxes, StagingMemory::kGranule);
      if (row.copies->AwaitAll() != 0) return Fails(row, "cannot read", row.copies->Describe());
      row.copies.reset();
    }
    const hid_t space = row.space.valid() ? row.space.get() : reading.memory_space;
    for_reads_.Add(reads, i, space, row.buffer());
  }
  reads_ = for_reads_.rows();
  return true;
}

bool StagedRows::AwaitAll() {
  for (const auto& row : rows_) {
    if (row->copies == nullptr || row->copies->done()) continue;
    const Span span(SpanKind::kGpuCopy);
    const uint64_t begin_ns = NowNs();
    if (row->copies->AwaitAll() != 0) return Fails(*row, "cannot write", row->copies->Describe());
    Waited(*row, NowNs() - begin_ns);
  }
  return true;
}

bool StagedRows::CopyUp() {
  for (const auto& row : rows_) {
    if (row->bytes != 0)
      row->copies = std::make_unique<gpu::Copies>(row->memory, after_, row->bytes);
  }
  BeginUp();
  return FinishUp();
}

bool StagedRows::PrepareUp() {
  for (const auto& row : rows_) {
    if (row->bytes == 0) continue;
    row->name = NameOf(library_, row->dataset);
    const std::shared_ptr<File> file = FileOf(library_, row->dataset, H5I_DATASET);
    if (file != nullptr) row->path = file->path();
    row->dataset = nullptr;
    row->space.Reset();
    row->copies = std::make_unique<gpu::Copies>(row->memory, after_, row->bytes, gpu::When::kLater);
    if (row->copies->error() != 0) return Fails(*row, "cannot read", row->copies->Describe());
  }
  return true;
}

void StagedRows::BeginUp() {
  for (const auto& row : rows_) {
    if (row->copies == nullptr) continue;
    row->copies->Up(row->device, row->host, row->boxes, StagingMemory::kGranule);
  }
}

bool StagedRows::PollUp() {
  return std::ranges::all_of(
      rows_, [](const auto& row) { return row->copies == nullptr || row->copies->Poll(); });
}

bool StagedRows::FinishUp() {
  const Span span(SpanKind::kGpuCopy);
  for (const auto& row : rows_) {
    if (row->copies == nullptr) continue;
    const uint64_t begin_ns = NowNs();
    if (row->copies->AwaitAll() != 0) return Fails(*row, "cannot read", row->copies->Describe());
    Waited(*row, NowNs() - begin_ns);
    Count(Counter::kGpuBytesUp, row->bytes);
  }
  return true;
}

StagedRows::Row* StagedRows::RowAt(const void* bytes, uint64_t size) const {
  const std::less_equal<const std::byte*> in_order;  // of any two pointers
  const auto* at = static_cast<const std::byte*>(bytes);
  for (const auto& row : rows_) {
    if (row->slab != nullptr && in_order(row->host, at) &&
        in_order(at + size, row->host + row->bytes)) {
      return row.get();
    }
  }
  return nullptr;
}

uint64_t StagedRows::PieceAt(const void* bytes, uint64_t size) const {
  const Row* const row = RowAt(bytes, size);
  if (row == nullptr) return size;
  const auto begin = static_cast<uint64_t>(static_cast<const std::byte*>(bytes) - row->host);
  return std::min(size, row->copies->EndOfPiece(begin) - begin);
}

Status StagedRows::Await(const void* bytes, uint64_t size) {
  Row* const row = RowAt(bytes, size);
  if (row == nullptr) return {};
  const Span span(SpanKind::kGpuCopy, size);
  const uint64_t begin_ns = NowNs();
  const auto end = static_cast<uint64_t>(static_cast<const std::byte*>(bytes) + size - row->host);
  if (row->copies->Await(end) != 0) {
    Fails(*row, "cannot write", row->copies->Describe());
    return Status::Failed(EIO, "copy from device memory");
  }
  Waited(*row, NowNs() - begin_ns);
  return {};
}

Slab* StagedRows::SlabOf(const void* bytes, uint64_t size) const {
  if (size < kSmallestHeld) return nullptr;
  const Row* const row = RowAt(bytes, size);
  // Memory outside the staging memory has no bound: what lies there is copied into the arena, which has one.
  if (row == nullptr || row->slab->kind != Slab::Kind::kOwned) return nullptr;
  Arena::Ref(row->slab);
  return row->slab;
}

namespace {

// Of a selection without gaps: how many elements it has; else 0.
uint64_t RunIn(h5::Library& hdf5, hid_t space) {
  if (!IsSpace(hdf5, space)) return 0;
  if (hdf5.Sget_select_type(space) == H5S_SEL_ALL)
    return static_cast<uint64_t>(std::max<hssize_t>(0, hdf5.Sget_select_npoints(space)));
  Stretches stretches(hdf5, space, 1);
  if (!stretches.More()) return 0;
  const uint64_t count = stretches.count;
  stretches.Skip(count);
  return stretches.More() ? 0 : count;
}

// Also before its first write, when it has no storage yet.
bool WillBeStoredInOnePiece(LibraryState& library, void* dataset, hid_t dxpl) {
  if (HasPlace(library, dataset, dxpl)) return true;
  const DatasetFacts& facts = FactsOf(library, dataset, dxpl);
  return facts.layout == H5D_CONTIGUOUS && !facts.external;
}

// A run that is longer than the sieve buffer goes from the program's memory to the driver as it is: HDF5 looks at it neither to
// convert, nor to filter, nor to gather it.
bool GoesStraightDown(LibraryState& library, const Writing& writing, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  if (library.large_sieves) return false;
  const h5::KeepErrorStack keep(hdf5);
  h5::OwnedId whole;
  hid_t space = writing.file_space;
  if (space == h5::kDefault) {
    whole = AskDataset(library, writing.dataset, H5VL_DATASET_GET_SPACE, dxpl);
    space = whole.get();
  }
  const uint64_t elements = RunIn(hdf5, space);
  if (elements * hdf5.Tget_size(writing.memory_type) < kWorthAsking) return false;
  if (writing.memory_space != h5::kDefault && RunIn(hdf5, writing.memory_space) != elements)
    return false;
  const std::shared_ptr<File> file = FileOf(library, writing.dataset, H5I_DATASET);
  return file != nullptr && !h5::Driver().above(library.slot, *file).page_buffer &&
         IsUnconverted(library, writing.dataset, writing.memory_type, dxpl) &&
         IsPlainTransfer(library, dxpl) && WillBeStoredInOnePiece(library, writing.dataset, dxpl);
}

}  // namespace

bool internal::AwaitHeld(LibraryState& library, const Writes& writes, hid_t dxpl) {
  HeldBytes* const held = HoldsBytes::current();
  if (held == nullptr) return true;
  if (held->size() >= kWorthAsking && writes.count == 1 &&
      GoesStraightDown(library, At(writes, 0), dxpl))
    return true;
  return held->AwaitAll();
}

}  // namespace tidelane::vol
