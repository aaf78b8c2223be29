// SPDX-License-Identifier: Apache-2.0
// Python door to the engine (limited API, CPython 3.11 and later). weightgym.rewards.weight_program.simulate is its
// one user.
#include "arguments.hpp"
#include "opaque.hpp"

#include <algorithm>
#include <string>

namespace weightgym {
namespace {

PyObject* game_fault(const Game& game) {
  PyErr_Format(PyExc_RuntimeError, "%s reached a state that the engine can't hold", game.name);
  return nullptr;
}

PyObject* run(PyObject*, PyObject* args) {
  PyObject* capsule;
  Buffer mask_bytes, weights;
  Rules rules;
  int first, count, threads;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "Oy*y*iiO&O&diiz", &capsule, &mask_bytes.view, &weights.view, &first, &count, read_word,
                        &rules.env_seed, read_word, &rules.action_seed, &rules.sticky, &rules.max_actions, &threads,
                        &kernel_name))
    return nullptr;
  const std::vector<uint8_t> masks = mask_bytes.take<uint8_t>();
  const Game* game = find_game(capsule, masks);
  const Kernel* kernel = game == nullptr ? nullptr : find_kernel(kernel_name);
  if (kernel == nullptr || !check_rules(rules, first, count)) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  std::vector<int64_t> scores(count);
  std::vector<int32_t> lengths(count);
  bool good = true;
  if (!without_gil([&] {
        good = run_episodes(*game, masks.data(), *policy, *kernel, rules, first, count, threads, scores.data(),
                            lengths.data());
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
  Buffer mask_bytes, weights;
  Rules rules;
  int episode;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "Oy*y*iO&O&diz", &capsule, &mask_bytes.view, &weights.view, &episode, read_word,
                        &rules.env_seed, read_word, &rules.action_seed, &rules.sticky, &rules.max_actions,
                        &kernel_name))
    return nullptr;
  const std::vector<uint8_t> masks = mask_bytes.take<uint8_t>();
  const Game* game = find_game(capsule, masks);
  const Kernel* kernel = game == nullptr ? nullptr : find_kernel(kernel_name);
  if (kernel == nullptr || !check_rules(rules, episode, 0)) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  std::vector<Step> steps;
  std::vector<uint64_t> rows;
  int32_t flags = 0;
  if (!without_gil([&] {
        flags = record_episode(*game, masks.data(), *policy, *kernel, rules, episode, steps, rows);
      }))
    return nullptr;
  return flags & kFault ? game_fault(*game) : history(steps, rows, flags, true);
}

PyObject* trace(PyObject*, PyObject* args) {
  PyObject* capsule;
  Buffer mask_bytes, actions;
  uint32_t env_seed;
  double sticky;
  if (!PyArg_ParseTuple(args, "Oy*O&y*d", &capsule, &mask_bytes.view, read_word, &env_seed, &actions.view, &sticky) ||
      !check_sticky(sticky))
    return nullptr;
  const std::vector<uint8_t> masks = mask_bytes.take<uint8_t>();
  const Game* game = find_game(capsule, masks);
  if (game == nullptr) return nullptr;
  if (actions.size() > 1000000)
    return PyErr_Format(PyExc_ValueError, "at most 1000000 actions, got %zd", actions.size());
  const std::vector<uint8_t> codes = actions.take<uint8_t>();
  for (size_t i = 0; i < codes.size(); ++i)
    if (codes[i] >= kActions) {
      PyErr_Format(PyExc_ValueError, "action %zu is %d: actions are 0 to 5", i, codes[i]);
      return nullptr;
    }
  std::vector<Step> steps;
  std::vector<uint64_t> rows;
  int32_t flags = 0;
  if (!without_gil([&] {
        flags = trace_actions(*game, masks.data(), env_seed, sticky, codes.data(), static_cast<int>(codes.size()),
                              steps, rows);
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
  if (rows.size() != sizeof(Observation)) return PyErr_Format(PyExc_ValueError, "rows: want 10 uint64 words");
  const std::vector<uint64_t> seen = rows.take<uint64_t>();
  for (uint64_t row : seen)
    if (row >> 60) return PyErr_Format(PyExc_ValueError, "rows: only the low 60 bits of a word are used");
  double sums[kActions];
  const DefaultArithmetic arithmetic;
  kernel->policy(*policy, seen.data(), sums);
  return to_bytes(sums, kActions);
}

PyObject* rounded(PyObject*, PyObject* args) {
  int exponential;
  Buffer values;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "py*z", &exponential, &values.view, &kernel_name)) return nullptr;
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr) return nullptr;
  const std::vector<float> inputs = values.take<float>();
  std::vector<float> result(inputs.size());
  const DefaultArithmetic arithmetic;
  kernel->rounded(exponential != 0, inputs.data(), result.data(), static_cast<long>(result.size()));
  return to_bytes(result.data(), result.size());
}

PyObject* sweep(PyObject*, PyObject* args) {
  int exponential;
  uint32_t first, last;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "pO&O&z", &exponential, read_word, &first, read_word, &last, &kernel_name)) return nullptr;
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr) return nullptr;
  long long wrong = 0;
  if (!without_gil([&] {
        const DefaultArithmetic arithmetic;
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

PyObject* set_arithmetic(PyObject*, PyObject* args) {
  const char* wanted;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "z#", &wanted, &size)) return nullptr;
  std::fenv_t saved, next;
  std::fegetenv(&saved);
  if (wanted != nullptr && size != sizeof next) return PyErr_Format(PyExc_ValueError, "want what this returned, or None");
  if (wanted != nullptr) std::memcpy(&next, wanted, sizeof next);
  std::fesetenv(wanted == nullptr ? FE_DFL_ENV : &next);
  return to_bytes(&saved, 1);
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
  std::unique_ptr<CompiledGame> made(new CompiledGame{{}, name});
  made->game = {kGameAbi,
                made->name.c_str(),
                state_bytes,
                6,
                reinterpret_cast<decltype(Game::reset)>(reset),
                reinterpret_cast<decltype(Game::step)>(step),
                reinterpret_cast<decltype(Game::observe)>(observe)};
  PyObject* capsule = PyCapsule_New(&made->game, kGameCapsule, [](PyObject* dead) {
    delete reinterpret_cast<CompiledGame*>(PyCapsule_GetPointer(dead, kGameCapsule));
  });
  if (capsule != nullptr) made.release();  // the capsule owns it now
  return capsule;
}

/// The function as Python calls it: out of memory is a MemoryError, not the end of the process.
template <PyCFunction function>
PyObject* safe(PyObject* self, PyObject* args) {
  try {
    return function(self, args);
  } catch (const std::exception&) {
    return PyErr_NoMemory();
  }
}

PyMethodDef kMethods[] = {
    {"run", safe<run>, METH_VARARGS,
     "run(game, masks, weights, first, count, env_seed, action_seed, sticky, max_actions, threads, kernel)\n"
     "-> (scores as int64 bytes, lengths as int32 bytes). Releases the GIL."},
    {"run_opaque", safe<run_opaque>, METH_VARARGS,
     "run_opaque(start, masks, weights, first, count, env_seed, action_seed, sticky, max_actions, kernel)\n"
     "-> (scores as float64 bytes, lengths as int32 bytes), of games that are Python objects: start(seed) returns\n"
     "(game, random stream), after reset."},
    {"record", safe<record>, METH_VARARGS,
     "record(game, masks, weights, episode, env_seed, action_seed, sticky, max_actions, kernel)\n"
     "-> (observations, rewards, executed, terminal, chosen, cumulative) of one episode."},
    {"trace", safe<trace>, METH_VARARGS,
     "trace(game, masks, env_seed, actions, sticky) -> (observations, rewards, executed, terminal)."},
    {"cumulative", safe<cumulative>, METH_VARARGS,
     "cumulative(weights, rows, kernel) -> running softmax sums, six float64 as bytes."},
    {"rounded", safe<rounded>, METH_VARARGS, "rounded(exponential, float32 bytes, kernel) -> float32 bytes."},
    {"sweep", safe<sweep>, METH_VARARGS,
     "sweep(exponential, first, last, kernel) -> how many float32 inputs with those bits, first to last inclusive,\n"
     "differ from the C library's float64 function rounded to float32. Releases the GIL."},
    {"set_arithmetic", safe<set_arithmetic>, METH_VARARGS,
     "set_arithmetic(None) -> this thread's floating-point modes, which become the default ones;\n"
     "set_arithmetic(modes) puts them back."},
    {"kernels", safe<kernels>, METH_NOARGS,
     "kernels() -> names of the kernels that this processor runs, fastest first."},
    {"symbols", safe<symbols>, METH_NOARGS,
     "symbols() -> addresses of the functions that compiled games call, by name."},
    {"make_game", safe<make_game>, METH_VARARGS,
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
