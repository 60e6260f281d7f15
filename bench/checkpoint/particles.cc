#include "checkpoint/particles.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>

#include "common/clock.h"

namespace tidelane::checkpoint {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kBlock = 1024;  // particles that stay in the first-level cache during a step
constexpr float kStep = 1e-3f;

struct Block {
  float x[kBlock], y[kBlock], z[kBlock], ux[kBlock], uy[kBlock], uz[kBlock];
};

// Leapfrog: rotate the momentum around the field, which grows with z, then drift.
void advance(Block& b) {
  for (size_t i = 0; i < kBlock; ++i) {
    const float t = 0.5f * kStep * (1.0f + 0.1f * b.z[i]);
    const float s = 2.0f * t / (1.0f + t * t);
    const float px = b.ux[i] + b.uy[i] * t;
    const float py = b.uy[i] - b.ux[i] * t;
    b.ux[i] += py * s;
    b.uy[i] -= px * s;
    b.x[i] += kStep * b.ux[i];
    b.y[i] += kStep * b.uy[i];
    b.z[i] += kStep * b.uz[i];
  }
}

// A reproducible value in [0, 1) for particle i, variable v.
float uniform(size_t i, size_t v) {
  uint64_t h = (i * 8 + v + 1) * 0x9e3779b97f4a7c15ull;
  h ^= h >> 31;
  h *= 0xbf58476d1ce4e5b9ull;
  h ^= h >> 29;
  return static_cast<float>(h >> 40) / static_cast<float>(1 << 24);
}

}  // namespace

template <class T>
Array<T>::Array(size_t n) {
  const size_t bytes = (n * sizeof(T) + kPage - 1) / kPage * kPage;
  void* p = std::aligned_alloc(kPage, bytes);
  if (p == nullptr) throw std::bad_alloc();
  std::fill_n(static_cast<T*>(p), bytes / sizeof(T), T{});  // touches every page before timing
  data_.reset(static_cast<T*>(p));
}

Particles::Particles(size_t count) : count_(count), id1_(count), id2_(count) {
  for (auto& set : sets_) {
    for (int v = 0; v < kReals; ++v) set.emplace_back(count);
  }
  for (size_t v = 0; v < kReals; ++v) {
    float* p = sets_[0][v].data();
    for (size_t i = 0; i < count; ++i) p[i] = v < 3 ? uniform(i, v) : 2 * uniform(i, v) - 1;
  }
  for (size_t i = 0; i < count; ++i) {
    id1_.data()[i] = static_cast<int32_t>(i);
    id2_.data()[i] = static_cast<int32_t>(count - i);
  }
}

std::vector<Variable> Particles::variables() const {
  const auto& s = sets_[current_];
  return {{"x", false, s[0].data()},  {"y", false, s[1].data()},  {"z", false, s[2].data()},
          {"ux", false, s[3].data()}, {"uy", false, s[4].data()}, {"uz", false, s[5].data()},
          {"id1", true, id1_.data()}, {"id2", true, id2_.data()}};
}

void Particles::push(int substeps, int threads) {
  const size_t blocks = (count_ + kBlock - 1) / kBlock;
  const auto share = [&](int i) {
    return std::min(count_,
                    blocks * static_cast<size_t>(i) / static_cast<size_t>(threads) * kBlock);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { push_range(substeps, share(i), share(i + 1)); });
  }
  push_range(substeps, 0, threads == 1 ? count_ : share(1));
  for (std::thread& other : others) other.join();
}

void Particles::push_range(int substeps, size_t begin, size_t end) {
  const auto& from = sets_[current_];
  auto& to = sets_[1 - current_];
  Block block{};
  float* const lanes[kReals] = {block.x, block.y, block.z, block.ux, block.uy, block.uz};
  for (size_t at = begin; at < end; at += kBlock) {
    const size_t n = std::min(kBlock, end - at);
    for (int v = 0; v < kReals; ++v) std::copy_n(from[v].data() + at, n, lanes[v]);
    for (int k = 0; k < substeps; ++k) advance(block);
    for (int v = 0; v < kReals; ++v) std::copy_n(lanes[v], n, to[v].data() + at);
  }
}

void Particles::stamp(int step) {
  for (auto& array : sets_[current_]) {
    for (size_t i = 0; i < count_; i += kPage) array.data()[i] = static_cast<float>(step);
  }
}

int calibrate(size_t count, double seconds, int threads) {
  Particles particles(count);
  // Each round aims closer, from a probe of a few sub-steps to the wanted time itself; the best of
  // the tries in a round is what the processor does when nobody disturbs it.
  double substeps = 4;
  for (const double aim_seconds : {seconds / 16, seconds / 4, seconds}) {
    double best_us = 1e30;
    for (int i = 0; i < 3; ++i) {
      const double begin = measure::now_us();
      particles.push(static_cast<int>(substeps), threads);
      best_us = std::min(best_us, measure::now_us() - begin);
    }
    substeps = std::max(1.0, std::round(substeps * aim_seconds * 1e6 / best_us));
  }
  return static_cast<int>(substeps);
}

}  // namespace tidelane::checkpoint
