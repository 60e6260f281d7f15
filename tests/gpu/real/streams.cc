// Transfers come after what the program has put into a stream: see groups.h.
#include <algorithm>
#include <chrono>

#include "gpu/real/groups.h"

namespace tidelane::gpu_real {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kScratch = size_t{128} << 20;
constexpr auto kLate = std::chrono::milliseconds(60);
constexpr size_t kMostLinks = 900;  // more of them wait for room in the driver's queue
constexpr size_t kSteps = 64;

// Work that keeps a stream busy for a while.
class Chain {
 public:
  Chain() {
    check(cuda().MemAlloc(&scratch_, kScratch), "cuMemAlloc");
    put(nullptr, 1);
    check(cuda().CtxSynchronize(), "cuCtxSynchronize");
    const auto begin = Clock::now();
    put(nullptr, kTried);
    check(cuda().CtxSynchronize(), "cuCtxSynchronize");
    const auto took = std::max<Clock::duration>(Clock::now() - begin, std::chrono::microseconds(1));
    links_ = std::min<size_t>(kMostLinks, static_cast<size_t>(kLate * kTried / took) + 1);
  }
  ~Chain() { cuda().MemFree(scratch_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void put(Stream stream) { put(stream, links_); }

 private:
  static constexpr size_t kTried = 4;

  void put(Stream stream, size_t links) const {
    for (size_t i = 0; i < links; ++i) {
      check(cuda().MemsetD8Async(scratch_, static_cast<unsigned char>(i), kScratch, stream),
            "cuMemsetD8Async");
    }
  }

  DevicePointer scratch_ = 0;
  size_t links_ = 0;
};

// Which bytes come late, and how.
enum class Way { kFills, kCopies };

struct Late {
  Way way;
  Stream stream;
  bool named;  // told by the transfer list
  Layout layout;
  size_t bytes;

  std::string name() const {
    return std::string(way == Way::kFills ? "fills" : "copies") + " on " +
           (named ? "a named stream" : "the legacy stream") + ", " + name_of(layout) + ", " +
           std::to_string(bytes) + " bytes";
  }
};

Hid list_for(const Late& late) {
  if (!late.named) return {};
  Hid list(H5Pcreate(H5P_DATASET_XFER));
  uint64_t stream = address(late.stream);
  if (H5Pinsert2(list, "tidelane.gpu_stream", sizeof stream, &stream, nullptr, nullptr, nullptr,
                 nullptr, nullptr, nullptr) < 0) {
    throw std::runtime_error("H5Pinsert2: " + error_text());
  }
  return list;
}

// Fills the memory with steps that begin at `first`, or copies them from `source`, at the end of the stream.
void put_late(const Late& late, Chain& chain, Memory& memory, const Memory* source,
              uint32_t first) {
  chain.put(late.stream);
  const DevicePointer to = address(memory.get());
  const size_t step = late.bytes / kSteps;
  for (size_t i = 0; i < kSteps; ++i) {
    if (source != nullptr) {
      check(cuda().MemcpyDtoDAsync(to + i * step, address(source->get()) + i * step, step,
                                   late.stream),
            "cuMemcpyDtoDAsync");
    } else {
      check(cuda().MemsetD8Async(to + i * step, static_cast<unsigned char>(first + i), step,
                                 late.stream),
            "cuMemsetD8Async");
    }
  }
  if (cuda().StreamQuery(late.stream) != kNotReady)
    throw Unavailable("the stream was done before the call, which proves nothing");
}

void run(Session& session, Chain& chain, const Late& late, Kind kind, uint32_t first) {
  if (late.way == Way::kCopies) need_function(cuda().MemcpyDtoDAsync, "cuMemcpyDtoDAsync");
  const Selection all = everything({late.bytes});
  const std::string name = std::string(name_of(kind)) + ": " + late.name();
  Target target = session.create(name, late.layout, all, Type::kByte);
  const Model steps{.name = name,
                    .type = Type::kByte,
                    .count = late.bytes,
                    .rule = Model::Rule::kSteps,
                    .seed = first,
                    .step = late.bytes / kSteps};
  Memory memory(kind, late.bytes);
  memory.use(late.bytes);
  memory.put(Bytes(late.bytes, '\x11'));
  Memory source(Kind::kDevice, late.bytes);
  source.use(late.bytes);
  source.put(steps.bytes());
  check(cuda().CtxSynchronize(), "cuCtxSynchronize");
  const Hid list = list_for(late);
  const hid_t given = late.named ? list.get() : H5P_DEFAULT;

  put_late(late, chain, memory, late.way == Way::kCopies ? &source : nullptr, first);
  call("H5Dwrite", [&] {
    return H5Dwrite(target.dataset, target.memory_type, H5S_ALL, H5S_ALL, given, memory.get());
  });
  session.count_down(memory, late.bytes);
  session.model(target.model) = steps;

  // What was put before a read is overwritten by what is read.
  put_late(late, chain, memory, nullptr, first + 100);
  call("H5Dread", [&] {
    return H5Dread(target.dataset, target.memory_type, H5S_ALL, H5S_ALL, given, memory.get());
  });
  session.count_up(memory, late.bytes);
  check(cuda().StreamSynchronize(late.stream), "cuStreamSynchronize");
  same("memory that was read into", memory.now(), steps.bytes(), 1);
}

}  // namespace

void streams(Session& session, const Settings&) {
  Chain chain;
  Stream own = nullptr;
  check(cuda().StreamCreate(&own, 1),
        "cuStreamCreate");  // which the legacy stream does not wait for
  uint32_t first = 1;
  for (const Way way : {Way::kFills, Way::kCopies}) {
    for (const bool named : {false, true}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChunked, Layout::kFiltered}) {
        for (const size_t bytes : {size_t{1} << 20, size_t{20} << 20}) {
          const Late late{way, named ? own : nullptr, named, layout, bytes};
          session.attempt(late.name(), [&] { run(session, chain, late, Kind::kDevice, first++); });
        }
      }
      const Late late{way, named ? own : nullptr, named, Layout::kChunked, size_t{1} << 20};
      for (const Kind kind : {Kind::kPooled, Kind::kManaged, Kind::kVirtual}) {
        session.attempt(std::string(name_of(kind)) + ": " + late.name(),
                        [&] { run(session, chain, late, kind, first++); });
      }
    }
  }
  session.reopen();
  session.compare_all();
}

}  // namespace tidelane::gpu_real
