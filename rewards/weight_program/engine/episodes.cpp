// SPDX-License-Identifier: Apache-2.0
#include "episodes.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>

namespace weightgym {

namespace {

constexpr int kChunk = 16;  ///< episodes a thread takes at a time
constexpr int kMostThreads = 256;

/// The first 624 outputs of the seeds that every run uses. Seeding costs as much as a short episode.
class SeedTable {
 public:
  static constexpr uint32_t kSeeds = 1000;

  SeedTable() : outputs_(new uint32_t[2 * kSeeds * Mt19937::kWords]) {
    auto generator = std::make_unique<Mt19937>();
    for (uint32_t i = 0; i < 2 * kSeeds; ++i) {
      generator->seed(i < kSeeds ? kEnv + i : kAction + (i - kSeeds));
      std::memcpy(&outputs_[i * Mt19937::kWords], generator->block(), sizeof(uint32_t) * Mt19937::kWords);
    }
  }

  void start(Mt19937& generator, uint32_t seed) const {
    if (seed - kEnv < kSeeds) {
      generator.seed(seed, &outputs_[(seed - kEnv) * Mt19937::kWords]);
    } else if (seed - kAction < kSeeds) {
      generator.seed(seed, &outputs_[(seed - kAction + kSeeds) * Mt19937::kWords]);
    } else {
      generator.seed(seed);
    }
  }

  static const SeedTable& instance() {
    static const SeedTable& table = *new SeedTable;  // never freed: a daemon thread may still play at process exit
    return table;
  }

 private:
  static constexpr uint32_t kEnv = 1729, kAction = 7919;  // the seeds of profile wpb-v1
  std::unique_ptr<uint32_t[]> outputs_;
};

/// One game with its environment stream and the stickiness of MinAtar's wrapper.
struct World {
  alignas(64) unsigned char state[kMaxStateBytes];
  Mt19937 rng;
  int last_action;

  void reset(const Game& game, uint32_t seed) {
    SeedTable::instance().start(rng, seed);
    last_action = 0;
    game.reset(state, &rng);
  }

  StepResult act(const Game& game, int action, double sticky) {
    if (rng.uniform() < sticky) action = last_action;
    last_action = action;
    return game.step(state, action, &rng);
  }

  void observe(const Game& game, const uint8_t* masks, uint64_t* rows) const {
    std::memset(rows, 0, sizeof(Observation));
    game.observe(state, masks, rows);
  }

  /// Appends what is seen now, and returns where it lies until the next call.
  const uint64_t* remember(const Game& game, const uint8_t* masks, std::vector<uint64_t>& rows) const {
    rows.resize(rows.size() + kGrid);
    uint64_t* seen = rows.data() + rows.size() - kGrid;
    observe(game, masks, seen);
    return seen;
  }
};

struct Player {
  World world;
  Mt19937 actions;

  bool play(const Game& game, const uint8_t* masks, const Policy& policy, const Kernel& kernel, const Rules& rules,
            int episode, int64_t* score, int32_t* length) {
    world.reset(game, rules.env_seed + episode);
    SeedTable::instance().start(actions, rules.action_seed + episode);
    Observation rows = {};
    double cumulative[kActions];
    if (policy.constant) kernel.policy(policy, rows, cumulative);
    int64_t total = 0;
    int32_t steps = 0;
    StepResult result = {0, 0};
    while (steps < rules.max_actions && result.flags == 0) {
      if (!policy.constant) {
        world.observe(game, masks, rows);
        kernel.policy(policy, rows, cumulative);
      }
      result = world.act(game, sample(cumulative, actions.uniform()), rules.sticky);
      total += result.reward;
      ++steps;
    }
    *score = total;
    *length = steps;
    return (result.flags & kFault) == 0;
  }
};

}  // namespace

bool run_episodes(const Game& game, const uint8_t* masks, const Policy& policy, const Kernel& kernel,
                  const Rules& rules, int first, int count, int threads, int64_t* scores, int32_t* lengths) {
  std::atomic<int> next{0};
  std::atomic<bool> good{true};
  SeedTable::instance();  // memory for it is asked here, where a refusal is an exception and not the end
  const auto work = [&]() noexcept {
    const DefaultArithmetic arithmetic;
    const std::unique_ptr<Player> player(new (std::nothrow) Player);
    if (player == nullptr) return;  // short of memory: the other threads do the work
    for (int start = next.fetch_add(kChunk); start < count && good; start = next.fetch_add(kChunk))
      for (int i = start; i < std::min(start + kChunk, count); ++i)
        if (!player->play(game, masks, policy, kernel, rules, first + i, scores + i, lengths + i)) good = false;
  };
  std::vector<std::thread> helpers;
  const int wanted = std::min({threads, (count + kChunk - 1) / kChunk, kMostThreads});
  helpers.reserve(std::max(0, wanted));
  try {
    for (int i = 1; i < wanted; ++i) helpers.emplace_back(work);
  } catch (const std::exception&) {
    // No more threads, or no memory for one to be had: those that run, this one at least, do all the work.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (good && next < count) throw std::bad_alloc();  // not one thread had room for a player
  return good;
}

int32_t record_episode(const Game& game, const uint8_t* masks, const Policy& policy, const Kernel& kernel,
                       const Rules& rules, int episode, std::vector<Step>& steps, std::vector<uint64_t>& rows) {
  const DefaultArithmetic arithmetic;
  const auto player = std::make_unique<Player>();
  player->world.reset(game, rules.env_seed + episode);
  SeedTable::instance().start(player->actions, rules.action_seed + episode);
  StepResult result = {0, 0};
  const uint64_t* seen = player->world.remember(game, masks, rows);
  while (static_cast<int32_t>(steps.size()) < rules.max_actions && result.flags == 0) {
    Step step;
    kernel.policy(policy, seen, step.cumulative);
    step.chosen = static_cast<int8_t>(sample(step.cumulative, player->actions.uniform()));
    result = player->world.act(game, step.chosen, rules.sticky);
    step.executed = static_cast<int8_t>(player->world.last_action);
    step.reward = result.reward;
    steps.push_back(step);
    seen = player->world.remember(game, masks, rows);
  }
  return result.flags;
}

int32_t trace_actions(const Game& game, const uint8_t* masks, uint32_t env_seed, double sticky, const uint8_t* actions,
                      int count, std::vector<Step>& steps, std::vector<uint64_t>& rows) {
  const auto world = std::make_unique<World>();
  world->reset(game, env_seed);
  StepResult result = {0, 0};
  world->remember(game, masks, rows);
  for (int i = 0; i < count && result.flags == 0; ++i) {
    result = world->act(game, actions[i], sticky);
    steps.push_back({static_cast<int8_t>(actions[i]), static_cast<int8_t>(world->last_action), result.reward, {}});
    world->remember(game, masks, rows);
  }
  return result.flags;
}

}  // namespace weightgym
