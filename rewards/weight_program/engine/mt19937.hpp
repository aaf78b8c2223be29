// SPDX-License-Identifier: Apache-2.0
// The Mersenne Twister as numpy.random.RandomState(seed) uses it: init_genrand seeding, 53-bit doubles from two words,
// and the legacy masked-rejection integers on 32-bit words.
// Algorithm: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998.
#pragma once
#include <cstdint>
#include <cstring>

namespace weightgym {

class Mt19937 {
 public:
  static constexpr int kWords = 624;

  Mt19937() = default;
  Mt19937(const Mt19937&) = delete;  // block_ may point into the object itself
  Mt19937& operator=(const Mt19937&) = delete;

  /// RandomState(seed).
  void seed(uint32_t value) {
    init(value);
    refill();
  }

  /// RandomState(seed), whose first 624 outputs are already known: nothing is computed until they run out.
  /// `outputs` must outlive this generator.
  void seed(uint32_t value, const uint32_t* outputs) {
    deferred_seed_ = value;
    deferred_ = true;
    block_ = outputs;
    position_ = 0;
  }

  /// The next 32 random bits.
  uint32_t next() {
    if (position_ == kWords) refill();
    return block_[position_++];
  }

  /// RandomState.random_sample() and .rand(): uniform in [0, 1).
  double uniform() {
    const uint32_t high = next() >> 5;
    const uint32_t low = next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  /// RandomState.randint(low, high), low < high. An empty choice (high = low + 1) draws nothing.
  int32_t integer(int32_t low, int32_t high) {
    const uint32_t range = static_cast<uint32_t>(high - low) - 1;
    if (range == 0) return low;
    uint32_t mask = range;
    for (int shift = 1; shift <= 16; shift *= 2) mask |= mask >> shift;
    uint32_t value;
    do value = next() & mask;
    while (value > range);
    return low + static_cast<int32_t>(value);
  }

  /// The 624 outputs of the current block.
  const uint32_t* block() const { return block_; }

 private:
  static constexpr int kShift = 397;

  void init(uint32_t value) {
    deferred_ = false;
    state_[0] = value;
    for (uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }

  static uint32_t twist(uint32_t upper, uint32_t lower, uint32_t shifted) {
    const uint32_t mixed = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return shifted ^ (mixed >> 1) ^ ((lower & 1u) ? 0x9908b0dfu : 0u);
  }

  void advance() {
    for (int i = 0; i < kWords - kShift; ++i) state_[i] = twist(state_[i], state_[i + 1], state_[i + kShift]);
    for (int i = kWords - kShift; i < kWords - 1; ++i)
      state_[i] = twist(state_[i], state_[i + 1], state_[i + kShift - kWords]);
    state_[kWords - 1] = twist(state_[kWords - 1], state_[0], state_[kShift - 1]);
  }

  void refill() {
    if (deferred_) {
      init(deferred_seed_);
      advance();  // the block that `outputs` held
    }
    advance();
    for (int i = 0; i < kWords; ++i) {
      uint32_t y = state_[i];
      y ^= y >> 11;
      y ^= (y << 7) & 0x9d2c5680u;
      y ^= (y << 15) & 0xefc60000u;
      y ^= y >> 18;
      outputs_[i] = y;
    }
    block_ = outputs_;
    position_ = 0;
  }

  uint32_t state_[kWords];
  uint32_t outputs_[kWords];
  const uint32_t* block_ = nullptr;
  int position_ = kWords;
  uint32_t deferred_seed_ = 0;
  bool deferred_ = false;
};

}  // namespace weightgym
