// SPDX-License-Identifier: Apache-2.0
// Python door to the engine (limited API, CPython 3.11 and later). weightgym.rewards.weight_program.simulate is its
// one user; arguments are checked here so that no call from Python can reach past a buffer.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "episodes.hpp"

namespace weightgym {
namespace {

/// A borrowed view of a bytes-like argument.
struct Buffer {
  Py_buffer view = {};
  ~Buffer() {
    if (view.obj != nullptr) PyBuffer_Release(&view);
  }
  const void* data() const { return view.buf; }
  Py_ssize_t size() const { return view.len; }
};

const Kernel* const kKernels[] = {&kKernelV3, &kKernelBaseline};

/// The kernel of that name; the fastest that this processor runs for a null name. Sets an exception.
const Kernel* find_kernel(const char* name) {
  for (const Kernel* kernel : kKernels)
    if (kernel->supported() && (name == nullptr || std::strcmp(name, kernel->name) == 0)) return kernel;
  PyErr_Format(PyExc_ValueError, "no kernel %s on this processor: kernels() lists them", name);
  return nullptr;
}

/// The game of a capsule, with masks that cover its channels. Sets an exception.
const Game* find_game(PyObject* capsule, const Buffer& masks) {
  const auto* game = static_cast<const Game*>(PyCapsule_GetPointer(capsule, kGameCapsule));
  if (game == nullptr) return nullptr;
  if (game->abi != kGameAbi || game->state_bytes > kMaxStateBytes) {
    PyErr_Format(PyExc_ImportError, "game built for interface %u, the engine has %u: reinstall weightgym", game->abi,
                 kGameAbi);
    return nullptr;
  }
  if (masks.size() != static_cast<Py_ssize_t>(game->native_channels)) {
    PyErr_Format(PyExc_ValueError, "%s has %u native channels, got %zd masks", game->name, game->native_channels,
                 masks.size());
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < masks.size(); ++i)
    if (static_cast<const uint8_t*>(masks.data())[i] > 63) {
      PyErr_SetString(PyExc_ValueError, "a channel mask has six bits");
      return nullptr;
    }
  return game;
}

/// The policy in a float32 buffer. Sets an exception.
std::unique_ptr<Policy> read_policy(const Buffer& weights) {
  if (weights.size() != static_cast<Py_ssize_t>(kParameters * sizeof(float))) {
    PyErr_Format(PyExc_ValueError, "weights: want %d float32 values, got %zd bytes", kParameters, weights.size());
    return nullptr;
  }
  std::vector<float> flat(kParameters);  // the buffer may lie at any address
  std::memcpy(flat.data(), weights.data(), kParameters * sizeof(float));
  for (int i = 0; i < kParameters; ++i)
    if (!std::isfinite(flat[i])) {
      PyErr_Format(PyExc_ValueError, "weights: value %d is not finite", i);
      return nullptr;
    }
  return std::make_unique<Policy>(flat.data());
}

bool check_rules(const Rules& rules, int first, int count) {
  constexpr int kMost = 1000000;
  const bool small = first <= kMost && count <= kMost && rules.max_actions <= kMost;
  if (small && first >= 0 && count >= 0 && rules.max_actions >= 0) return true;
  PyErr_Format(PyExc_ValueError, "first, count and max_actions must be from 0 to %d", kMost);
  return false;
}

/// Runs `work` without the GIL and turns a C++ exception into a Python one. False when it threw.
template <class Work>
bool without_gil(Work work) {
  bool good = true;
  Py_BEGIN_ALLOW_THREADS;
  try {
    work();
  } catch (const std::exception&) {  // out of memory or threads
    good = false;
  }
  Py_END_ALLOW_THREADS;
  if (!good) PyErr_NoMemory();
  return good;
}

template <class T>
PyObject* to_bytes(const T* values, size_t count) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(values), static_cast<Py_ssize_t>(count * sizeof(T)));
}

PyObject* game_fault(const Game& game) {
  PyErr_Format(PyExc_RuntimeError, "%s reached a state that the engine can't hold", game.name);
  return nullptr;
}

PyObject* run(PyObject*, PyObject* args) {
  PyObject* capsule;
  Buffer masks, weights;
  Rules rules;
  int first, count, threads;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "Oy*y*iiIIdiiz", &capsule, &masks.view, &weights.view, &first, &count, &rules.env_seed,
                        &rules.action_seed, &rules.sticky, &rules.max_actions, &threads, &kernel_name))
    return nullptr;
  const Game* game = find_game(capsule, masks);
  const Kernel* kernel = game == nullptr ? nullptr : find_kernel(kernel_name);
  if (kernel == nullptr || !check_rules(rules, first, count)) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  std::vector<int64_t> scores(count);
  std::vector<int32_t> lengths(count);
  bool good = true;
  if (!without_gil([&] {
        good = run_episodes(*game, static_cast<const uint8_t*>(masks.data()), *policy, *kernel, rules, first, count,
                            threads, scores.data(), lengths.data());
      }))
    return nullptr;
  if (!good) return game_fault(*game);
  return Py_BuildValue("NN", to_bytes(scores.data(), count), to_bytes(lengths.data(), count));
}

/// (observations, rewards, executed actions, terminal) or, with `policy_too`, also chosen actions and softmax sums.
PyObject* history(const std::vector<Step>& steps, const std::vector<uint64_t>& rows, int32_t flags, bool policy_too) {
  std::vector<int32_t> rewards;
  std::vector<int8_t> executed, chosen;
  std::vector<double> cumulative;
  for (const Step& step : steps) {
    rewards.push_back(step.reward);
    executed.push_back(step.executed);
    chosen.push_back(step.chosen);
    cumulative.insert(cumulative.end(), step.cumulative, step.cumulative + kActions);
  }
  PyObject* terminal = PyBool_FromLong(flags & kTerminal);
  PyObject* observations = to_bytes(rows.data(), rows.size());
  PyObject* reward_bytes = to_bytes(rewards.data(), rewards.size());
  PyObject* executed_bytes = to_bytes(executed.data(), executed.size());
  if (!policy_too) return Py_BuildValue("NNNN", observations, reward_bytes, executed_bytes, terminal);
  return Py_BuildValue("NNNNNN", observations, reward_bytes, executed_bytes, terminal,
                       to_bytes(chosen.data(), chosen.size()), to_bytes(cumulative.data(), cumulative.size()));
}

PyObject* record(PyObject*, PyObject* args) {
  PyObject* capsule;
  Buffer masks, weights;
  Rules rules;
  int episode;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "Oy*y*iIIdiz", &capsule, &masks.view, &weights.view, &episode, &rules.env_seed,
                        &rules.action_seed, &rules.sticky, &rules.max_actions, &kernel_name))
    return nullptr;
  const Game* game = find_game(capsule, masks);
  const Kernel* kernel = game == nullptr ? nullptr : find_kernel(kernel_name);
  if (kernel == nullptr || !check_rules(rules, episode, 0)) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  std::vector<Step> steps;
  std::vector<uint64_t> rows;
  int32_t flags = 0;
  if (!without_gil([&] {
        flags = record_episode(*game, static_cast<const uint8_t*>(masks.data()), *policy, *kernel, rules, episode,
                               steps, rows);
      }))
    return nullptr;
  return flags & kFault ? game_fault(*game) : history(steps, rows, flags, true);
}

PyObject* trace(PyObject*, PyObject* args) {
  PyObject* capsule;
  Buffer masks, actions;
  unsigned env_seed;
  double sticky;
  if (!PyArg_ParseTuple(args, "Oy*Iy*d", &capsule, &masks.view, &env_seed, &actions.view, &sticky)) return nullptr;
  const Game* game = find_game(capsule, masks);
  if (game == nullptr) return nullptr;
  const auto* codes = static_cast<const uint8_t*>(actions.data());
  if (actions.size() > 1000000) return PyErr_Format(PyExc_ValueError, "at most 1000000 actions, got %zd", actions.size());
  for (Py_ssize_t i = 0; i < actions.size(); ++i)
    if (codes[i] >= kActions) {
      PyErr_Format(PyExc_ValueError, "action %zd is %d: actions are 0 to 5", i, codes[i]);
      return nullptr;
    }
  std::vector<Step> steps;
  std::vector<uint64_t> rows;
  int32_t flags = 0;
  if (!without_gil([&] {
        flags = trace_actions(*game, static_cast<const uint8_t*>(masks.data()), env_seed, sticky, codes,
                              static_cast<int>(actions.size()), steps, rows);
      }))
    return nullptr;
  return flags & kFault ? game_fault(*game) : history(steps, rows, flags, false);
}

PyObject* cumulative(PyObject*, PyObject* args) {
  Buffer weights, rows;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "y*y*z", &weights.view, &rows.view, &kernel_name)) return nullptr;
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  Observation seen;
  if (rows.size() != sizeof seen) return PyErr_Format(PyExc_ValueError, "rows: want 10 uint64 words");
  std::memcpy(seen, rows.data(), sizeof seen);
  for (uint64_t row : seen)
    if (row >> 60) return PyErr_Format(PyExc_ValueError, "rows: only the low 60 bits of a word are used");
  double sums[kActions];
  kernel->policy(*policy, seen, sums);
  return to_bytes(sums, kActions);
}

PyObject* rounded(PyObject*, PyObject* args) {
  int exponential;
  Buffer values;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "py*z", &exponential, &values.view, &kernel_name)) return nullptr;
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr) return nullptr;
  const Py_ssize_t count = values.size() / static_cast<Py_ssize_t>(sizeof(float));
  std::vector<float> inputs(count), result(count);
  if (count > 0) std::memcpy(inputs.data(), values.data(), count * sizeof(float));
  kernel->rounded(exponential != 0, inputs.data(), result.data(), count);
  return to_bytes(result.data(), result.size());
}

PyObject* sweep(PyObject*, PyObject* args) {
  int exponential;
  unsigned first, last;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "pIIz", &exponential, &first, &last, &kernel_name)) return nullptr;
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr) return nullptr;
  long long wrong = 0;
  if (!without_gil([&] {
        constexpr unsigned kBlock = 4096;
        std::vector<float> x(kBlock), y(kBlock);
        for (uint64_t start = first; start <= last; start += kBlock) {
          const auto size = static_cast<unsigned>(std::min<uint64_t>(kBlock, last - start + 1));
          for (unsigned i = 0; i < size; ++i) {
            const auto bits = static_cast<uint32_t>(start + i);
            std::memcpy(&x[i], &bits, sizeof bits);
          }
          kernel->rounded(exponential != 0, x.data(), y.data(), size);
          for (unsigned i = 0; i < size; ++i) {
            const double judge = exponential ? (x[i] < -87.0f ? 0.0 : std::exp(static_cast<double>(x[i])))
                                             : std::tanh(static_cast<double>(x[i]));
            wrong += static_cast<float>(judge) != y[i];
          }
        }
      }))
    return nullptr;
  return PyLong_FromLongLong(wrong);
}

PyObject* kernels(PyObject*, PyObject*) {
  PyObject* names = PyList_New(0);
  for (const Kernel* kernel : kKernels) {
    if (names == nullptr || !kernel->supported()) continue;
    PyObject* name = PyUnicode_FromString(kernel->name);
    if (name == nullptr || PyList_Append(names, name) != 0) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

// What compiled games call; bad arguments of theirs must not hang the loop.
extern "C" int64_t weightgym_below(Mt19937* rng, int64_t n) {
  return n > 0 && n <= INT32_MAX ? rng->integer(0, static_cast<int32_t>(n)) : 0;
}
extern "C" double weightgym_uniform(Mt19937* rng) { return rng->uniform(); }

PyObject* symbols(PyObject*, PyObject*) {
  return Py_BuildValue("{s:n,s:n}", "weightgym_below", reinterpret_cast<Py_ssize_t>(&weightgym_below),
                       "weightgym_uniform", reinterpret_cast<Py_ssize_t>(&weightgym_uniform));
}

/// A game whose functions were compiled at run time.
struct CompiledGame {
  Game game;
  std::string name;
};

PyObject* make_game(PyObject*, PyObject* args) {
  const char* name;
  unsigned state_bytes;
  Py_ssize_t reset, step, observe;
  if (!PyArg_ParseTuple(args, "sInnn", &name, &state_bytes, &reset, &step, &observe)) return nullptr;
  if (state_bytes > kMaxStateBytes || reset == 0 || step == 0 || observe == 0)
    return PyErr_Format(PyExc_ValueError, "%s: want a state of at most %d bytes and three addresses", name,
                        kMaxStateBytes);
  auto* made = new CompiledGame{{}, name};
  made->game = {kGameAbi,
                made->name.c_str(),
                state_bytes,
                6,
                reinterpret_cast<decltype(Game::reset)>(reset),
                reinterpret_cast<decltype(Game::step)>(step),
                reinterpret_cast<decltype(Game::observe)>(observe)};
  return PyCapsule_New(&made->game, kGameCapsule, [](PyObject* capsule) {
    delete reinterpret_cast<CompiledGame*>(PyCapsule_GetPointer(capsule, kGameCapsule));
  });
}

PyMethodDef kMethods[] = {
    {"run", run, METH_VARARGS,
     "run(game, masks, weights, first, count, env_seed, action_seed, sticky, max_actions, threads, kernel)\n"
     "-> (scores as int64 bytes, lengths as int32 bytes). Releases the GIL."},
    {"record", record, METH_VARARGS,
     "record(game, masks, weights, episode, env_seed, action_seed, sticky, max_actions, kernel)\n"
     "-> (observations, rewards, executed, terminal, chosen, cumulative) of one episode."},
    {"trace", trace, METH_VARARGS,
     "trace(game, masks, env_seed, actions, sticky) -> (observations, rewards, executed, terminal)."},
    {"cumulative", cumulative, METH_VARARGS,
     "cumulative(weights, rows, kernel) -> running softmax sums, six float64 as bytes."},
    {"rounded", rounded, METH_VARARGS, "rounded(exponential, float32 bytes, kernel) -> float32 bytes."},
    {"sweep", sweep, METH_VARARGS,
     "sweep(exponential, first, last, kernel) -> how many float32 inputs with those bits, first to last inclusive,\n"
     "differ from the C library's float64 function rounded to float32. Releases the GIL."},
    {"kernels", kernels, METH_NOARGS, "kernels() -> names of the kernels that this processor runs, fastest first."},
    {"symbols", symbols, METH_NOARGS, "symbols() -> addresses of the functions that compiled games call, by name."},
    {"make_game", make_game, METH_VARARGS,
     "make_game(name, state_bytes, reset, step, observe) -> the game of three functions with the signatures of\n"
     "engine/game_abi.hpp, given by address. Its native channels are the network's six; the masks are ignored."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef_Slot kSlots[] = {{0, nullptr}};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "_engine",
                       "The episode loop and the policy of WeightProgramBench (see engine/ in the sources).",
                       0,
                       kMethods,
                       kSlots,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace weightgym

PyMODINIT_FUNC PyInit__engine() { return PyModuleDef_Init(&weightgym::kModule); }
