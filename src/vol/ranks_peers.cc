#include "vol/ranks_peers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include "base/activity.h"

namespace tidelane::vol {

namespace {

constexpr int kAttempts = 3;
constexpr auto kPatience = std::chrono::seconds(10);  // with a rank that copies its part of a write

// A question, as words: these, and then both corners.
enum Word { kFile, kWhat, kDataset, kFirst, kEnd, kRank, kWords };

std::vector<uint64_t> Encode(const Peer& peer, const ChunkQuestion& question) {
  std::vector<uint64_t> words(kWords);
  words[kFile] = peer.file;
  words[kWhat] = static_cast<uint64_t>(question.what);
  words[kDataset] = question.dataset;
  words[kFirst] = question.first_write;
  words[kEnd] = question.end_write;
  words[kRank] = static_cast<uint64_t>(question.rank);
  words.insert(words.end(), question.low.begin(), question.low.begin() + question.rank);
  words.insert(words.end(), question.high.begin(), question.high.begin() + question.rank);
  return words;
}

std::optional<ChunkQuestion> Decode(std::span<const uint64_t> words) {
  if (words.size() < kWords || words[kRank] > kMaxRank ||
      words[kWhat] > static_cast<uint64_t>(ChunkQuestion::What::kStored) ||
      words.size() != kWords + 2 * words[kRank]) {
    return std::nullopt;
  }
  ChunkQuestion question;
  question.what = static_cast<ChunkQuestion::What>(words[kWhat]);
  question.dataset = words[kDataset];
  question.first_write = words[kFirst];
  question.end_write = words[kEnd];
  question.rank = static_cast<int>(words[kRank]);
  const auto corners = words.begin() + kWords;
  std::copy_n(corners, question.rank, question.low.begin());
  std::copy_n(corners + question.rank, question.rank, question.high.begin());
  return question;
}

// What goes before each chunk's bytes.
struct Head {
  uint64_t write;
  uint64_t rank;  // of the dataset
  Coordinates origin;
  uint64_t size;
  uint64_t mask;
  uint64_t bytes;
};

}  // namespace

StoredChunk StoredOf(const ChunkJob& job, uint32_t all_filters) {
  if (job.status.ok() && job.stored.size() <= UINT32_MAX)
    return {job.stored.data(), job.stored.size(), job.mask};
  return {job.bytes.data(), job.bytes.size(), all_filters};
}

void FilterAll(std::span<const std::shared_ptr<ChunkJob>> jobs) {
  for (const auto& job : jobs) job->FilterHere();
  for (const auto& job : jobs) job->Await();
}

bool ChunkQuestion::Concerns(const ChunkGrid& grid, const Coordinates& origin) const {
  for (int d = 0; d < rank; ++d) {
    if (origin[d] > high[d] || origin[d] + grid.chunk[d] <= low[d]) return false;
  }
  return true;
}

std::shared_ptr<ChunkBoard> ChunkBoard::Make() {
  std::shared_ptr<ChunkBoard> board(new ChunkBoard);
  const std::weak_ptr<ChunkBoard> weak = board;
  board->subject_ = InquiryDesk::Get().Add(
      weak, [weak](std::span<const uint64_t> words, const InquiryDesk::Send& send) {
        if (const auto there = weak.lock(); there != nullptr) there->Answer(words, send);
      });
  return board;
}

void ChunkBoard::Reserve(uint64_t file, size_t writes) {
  MutexLock lock(mutex_);
  std::vector<Write>& there = files_[file].writes;
  const size_t wanted = there.size() + writes;
  if (there.capacity() < wanted) there.reserve(std::max(wanted, 2 * there.capacity()));
}

void ChunkBoard::Add(uint64_t file, uint64_t number, uint64_t dataset, uint32_t all_filters,
                     Jobs jobs) {
  MutexLock lock(mutex_);
  OfFile& of = files_[file];
  of.writes.push_back({number, dataset, all_filters, std::move(jobs)});
  of.end = number + 1;
  changed_.NotifyAll();
}

bool ChunkBoard::Drop(uint64_t file, uint64_t end) {
  MutexLock lock(mutex_);
  const auto of = files_.find(file);
  if (of == files_.end()) return false;
  std::erase_if(of->second.writes, [&](const Write& write) { return write.number < end; });
  return answering_ != 0;
}

void ChunkBoard::Forget(uint64_t file) {
  MutexLock lock(mutex_);
  files_.erase(file);
}

std::vector<ChunkBoard::Write> ChunkBoard::Find(uint64_t file, const ChunkQuestion& question) {
  const auto late = std::chrono::steady_clock::now() + kPatience;
  std::vector<Write> found;
  MutexLock lock(mutex_);
  while (files_[file].end < question.end_write) {
    if (!changed_.WaitUntil(mutex_, late)) throw std::bad_alloc();  // no answer
  }
  for (const Write& write : files_[file].writes) {
    if (write.dataset != question.dataset || write.number < question.first_write ||
        write.number >= question.end_write) {
      continue;
    }
    Write part{write.number, write.dataset, write.all_filters, {}};
    std::ranges::copy_if(write.jobs, std::back_inserter(part.jobs), [&](const auto& job) {
      return question.Concerns(job->grid(), job->origin);
    });
    found.push_back(std::move(part));
  }
  ++answering_;
  return found;
}

void ChunkBoard::Answer(std::span<const uint64_t> words, const InquiryDesk::Send& send) {
  const std::optional<ChunkQuestion> question = Decode(words);
  if (!question.has_value()) return;
  const std::vector<Write> writes = Find(words[kFile], *question);
  // Also where memory is short meanwhile: buffers would never be used again.
  const std::shared_ptr<void> answered(this, [](void* const board) {
    auto& there = *static_cast<ChunkBoard*>(board);
    MutexLock lock(there.mutex_);
    --there.answering_;
  });
  const bool elements = question->what == ChunkQuestion::What::kElements;
  uint64_t count = 0;
  for (const Write& write : writes) {
    if (!elements) FilterAll(write.jobs);
    count += write.jobs.size();
  }
  bool heard = send(&count, sizeof count);
  for (const Write& write : writes) {
    for (const auto& job : write.jobs) {
      if (!heard) break;
      StoredChunk chunk{job->bytes.data(), job->bytes.size()};
      if (!elements) chunk = StoredOf(*job, write.all_filters);
      const bool sizes = question->what == ChunkQuestion::What::kSizes;
      const Head head{write.number, static_cast<uint64_t>(job->grid().rank),
                      job->origin,  chunk.size,
                      chunk.mask,   sizes ? 0 : chunk.size};
      heard = send(&head, sizeof head) && send(chunk.bytes, head.bytes);
    }
  }
}

namespace {

bool Fetch(const Peer& peer, int rank, const ChunkQuestion& question,
           std::vector<HeldChunk>& found) {
  auto inquiry = Inquiry::Ask(peer.desk, peer.subject, Encode(peer, question));
  uint64_t count = 0;
  if (!inquiry.has_value() || !inquiry->Read(&count, sizeof count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Head head{};
    if (!inquiry->Read(&head, sizeof head)) return false;
    HeldChunk& chunk = found.emplace_back();
    chunk.write = head.write;
    chunk.rank = rank;
    chunk.origin = head.origin;
    chunk.size = head.size;
    chunk.mask = static_cast<uint32_t>(head.mask);
    chunk.fetched.resize(head.bytes);
    if (!inquiry->Read(chunk.fetched.data(), head.bytes)) return false;
    chunk.bytes = chunk.fetched.data();
  }
  return true;
}

}  // namespace

// Again, where both have been stopped for long, and the other one gave up first.
bool AskForChunks(const Peer& peer, int rank, const ChunkQuestion& question,
                  std::vector<HeldChunk>& found) {
  const Waiting waiting(Wait::kRanks);
  const size_t before = found.size();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (Fetch(peer, rank, question, found)) return true;
    found.erase(found.begin() + static_cast<ptrdiff_t>(before), found.end());
  }
  return false;
}

}  // namespace tidelane::vol
