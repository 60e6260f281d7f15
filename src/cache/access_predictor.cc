#include "cache/access_predictor.h"

#include <algorithm>

namespace tidelane {
namespace {

constexpr uint64_t kPage = 4096;

// How far apart what is alike may lie: a 16th of its length, and hardly ever more than metadata takes.
uint64_t Tolerance(uint64_t length) { return std::min(length / 16, uint64_t{64} << 10); }

uint64_t Difference(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

// Appends [begin, end) to what is predicted; what is left of `most`.
uint64_t Append(uint64_t begin, uint64_t end, uint64_t most, std::vector<ByteRange>& next) {
  end = std::min(end, most < UINT64_MAX - begin ? begin + most : UINT64_MAX);
  if (begin >= end) return most;
  if (!next.empty() && begin >= next.back().begin && begin <= next.back().end) {
    next.back().end = std::max(next.back().end, end);
  } else {
    next.push_back({begin, end});
  }
  return most - (end - begin);
}

}  // namespace

// Neighbours, with a gap that costs less to fetch than a request, or an overlap as of slabs with halos.
bool AccessPredictor::Joins(uint64_t address, uint64_t size) {
  if (count_ == 0) return false;
  const Run& run = Back(0);
  return address > run.last && address + size > run.end &&
         address <= run.end + Tolerance(run.end - run.last);
}

bool AccessPredictor::Observe(uint64_t address, uint64_t size) {
  if (size == 0 || address + size < address) return false;
  if (!Joins(address, size)) {
    if (count_ != 0) Judge(address);
    Begin(address, size);
    return true;
  }
  Run& run = Back(0);
  run.end = address + size;
  run.last = address;
  ++run.reads;
  if (period_ != 0) {
    const uint64_t expected = Back(period_).length();
    // It is longer than last time: rule 2 does not know it.
    if (run.length() > expected + Tolerance(expected)) period_ = 0;
  }
  return false;
}

// The current run has ended, and the next one begins at `address`: as foretold?
void AccessPredictor::Judge(uint64_t address) {
  const Run& run = Back(0);
  if (period_ != 0 && claimed_next_) {
    const Run& then = Back(period_);
    const uint64_t next = run.begin + (Back(period_ - 1).begin - then.begin);
    const bool as_long = Difference(run.length(), then.length()) <= Tolerance(then.length());
    as_long&& Difference(address, next) <= Tolerance(then.length()) ? again_.Right()
                                                                    : again_.Wrong();
  }
  if (claimed_at_ != 0) run.length() >= 2 * claimed_at_ ? further_.Right() : further_.Wrong();
}

void AccessPredictor::Begin(uint64_t address, uint64_t size) {
  ++count_;
  Back(0) = {address, address + size, address, 1};
  claimed_at_ = 0;
  claimed_next_ = false;
  UpdateFits();
  period_ = BestPeriod();
}

void AccessPredictor::UpdateFits() {
  for (size_t period = 1; period <= kLongestPeriod; ++period) {
    if (!FitsNow(period)) fits_[period] = {};
  }
}

// Whether the run before this one was as long as its like, and this one lies as far from it.
bool AccessPredictor::FitsNow(size_t period) {
  if (count_ < period + 2) return false;
  const uint64_t length = Back(1).length();
  const uint64_t length_then = Back(period + 1).length();
  const uint64_t distance =
      Back(0).begin - Back(1).begin;  // modulo 2^64, as they may lie backwards
  const uint64_t distance_then = Back(period).begin - Back(period + 1).begin;
  const uint64_t moved = std::min(distance - distance_then, distance_then - distance);
  const uint64_t grown = Difference(length, length_then);
  if (std::max(moved, grown) > Tolerance(length_then)) return false;
  Fit& fit = fits_[period];
  ++fit.runs;
  fit.bytes += length;
  fit.drift = std::max({fit.drift, moved, grown});
  return true;
}

// The one that has held longest; of equals the shortest.
size_t AccessPredictor::BestPeriod() const {
  size_t best = 0;
  for (size_t period = 1; period <= kLongestPeriod; ++period) {
    const uint64_t runs = fits_[period].runs;
    if (runs >= again_.needed() && (best == 0 || runs > fits_[best].runs)) best = period;
  }
  return best;
}

void AccessPredictor::Predict(uint64_t most, uint64_t eof, std::vector<ByteRange>& next) {
  next.clear();
  if (count_ == 0) return;
  const Run& run = Back(0);
  if (period_ != 0) {
    PredictAgain(most, eof, next);
  } else if (run.reads > further_.needed()) {
    Append(run.end, eof, std::min(most, run.length()), next);
    if (claimed_at_ == 0 && !next.empty()) claimed_at_ = run.length();
  }
}

void AccessPredictor::PredictAgain(uint64_t most, uint64_t eof, std::vector<ByteRange>& next) {
  const Run& run = Back(0);
  const Fit& fit = fits_[period_];
  uint64_t left = std::min(most, fit.bytes + run.length());
  const uint64_t wider = fit.drift == 0 ? 0 : (2 * fit.drift + kPage - 1) / kPage * kPage;
  left = Append(run.end, std::min(run.begin + Back(period_).length() + wider, eof), left, next);
  uint64_t begin = run.begin;
  // The runs of the last period, the oldest first; again and again.
  for (size_t i = 0; left != 0 && next.size() < kMostRanges && i < kMostRanges; ++i) {
    const size_t like = period_ - 1 - i % period_;
    begin += Back(like).begin - Back(like + 1).begin;
    const uint64_t length = like == 0 ? Back(period_).length() : Back(like).length();
    if (begin >= eof || length > eof) break;  // it goes no further, or it lies before the beginning
    const uint64_t end = std::min(begin + length + wider, eof);
    left = Append(begin - std::min(begin, wider), end, left, next);
    claimed_next_ = true;
  }
}

}  // namespace tidelane
