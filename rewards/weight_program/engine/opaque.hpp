// SPDX-License-Identifier: Apache-2.0
// Games that are Python objects: loop, packing, policy and the action stream are native, only the game's own methods
// and its random stream are Python calls. Everything here needs the GIL.
#pragma once
#include <vector>

#include "arguments.hpp"

namespace weightgym {
namespace {

/// A strong reference, let go at the end of its scope.
class Owned {
 public:
  explicit Owned(PyObject* object = nullptr) : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

/// A game in play, in the form of MinAtar's `Env`: act(action) -> (reward, terminal), state() -> 10x10xC of bytes.
class OpaqueGame {
 public:
  /// `game` and its random stream, an object with random_sample(). Sets an exception; then `good` is false.
  OpaqueGame(PyObject* game, PyObject* random, const std::vector<uint8_t>& masks)
      : act_(PyObject_GetAttrString(game, "act")),
        state_(PyObject_GetAttrString(game, "state")),
        draw_(PyObject_GetAttrString(random, "random_sample")),
        masks_(masks) {}

  bool good() const { return act_ && state_ && draw_; }

  /// Play the action or, with probability `sticky`, the last one. False with an exception set.
  bool act(int action, double sticky, double* reward, bool* terminal) {
    const Owned drawn(PyObject_CallNoArgs(draw_.get()));
    if (!drawn) return false;
    const double u = PyFloat_AsDouble(drawn.get());
    if (u == -1.0 && PyErr_Occurred() != nullptr) return false;
    if (u >= sticky) last_ = action;
    const Owned code(PyLong_FromLong(last_));
    if (!code) return false;
    const Owned result(PyObject_CallFunctionObjArgs(act_.get(), code.get(), nullptr));
    if (!result) return false;
    if (!PySequence_Check(result.get()) || PySequence_Size(result.get()) != 2) {
      PyErr_SetString(PyExc_TypeError, "a game's act() returns (reward, terminal)");
      return false;
    }
    const Owned given(PySequence_GetItem(result.get(), 0)), ended(PySequence_GetItem(result.get(), 1));
    if (!given || !ended) return false;
    *reward = PyFloat_AsDouble(given.get());
    if (*reward == -1.0 && PyErr_Occurred() != nullptr) return false;
    if (!std::isfinite(*reward)) {
      PyErr_SetString(PyExc_ValueError, "a game's reward is finite");
      return false;
    }
    const int over = PyObject_IsTrue(ended.get());
    *terminal = over == 1;
    return over >= 0;
  }

  /// What is seen now, packed. False with an exception set.
  bool observe(uint64_t* rows) {
    const Owned seen(PyObject_CallNoArgs(state_.get()));
    if (!seen) return false;
    Buffer buffer;
    if (PyObject_GetBuffer(seen.get(), &buffer.view, PyBUF_RECORDS_RO) != 0) return false;
    const Py_buffer& view = buffer.view;
    const auto channels = static_cast<Py_ssize_t>(masks_.size());
    const bool bytes = view.itemsize == 1 && view.format != nullptr && std::strspn(view.format, "?bB") == 1;
    if (!bytes || view.ndim != 3 || view.shape[0] != kGrid || view.shape[1] != kGrid || view.shape[2] != channels) {
      PyErr_Format(PyExc_ValueError, "a game's state() is an array of shape 10x10x%zd of bool or one-byte integers",
                   channels);
      return false;
    }
    for (int row = 0; row < kGrid; ++row) {
      rows[row] = 0;
      for (int column = 0; column < kGrid; ++column) {
        const char* cell = static_cast<const char*>(view.buf) + row * view.strides[0] + column * view.strides[1];
        for (Py_ssize_t channel = 0; channel < channels; ++channel, cell += view.strides[2])
          if (*cell != 0) light(rows, row, column, masks_[channel]);
      }
    }
    return true;
  }

 private:
  Owned act_, state_, draw_;
  const std::vector<uint8_t>& masks_;
  int last_ = 0;
};

struct OpaqueRun {
  const Policy& policy;
  const Kernel& kernel;
  const Rules& rules;
  const std::vector<uint8_t>& masks;

  /// Plays one episode of what `start(seed)` returns: (game, random stream). False with an exception set.
  bool play(PyObject* start, int episode, double* score, int32_t* length) const {
    const Owned made(PyObject_CallFunction(start, "k", static_cast<unsigned long>(rules.env_seed + episode)));
    PyObject *object, *random;
    if (!made || !PyArg_ParseTuple(made.get(), "OO", &object, &random)) return false;
    OpaqueGame game(object, random, masks);
    if (!game.good()) return false;
    Mt19937 actions;
    actions.seed(rules.action_seed + episode);
    *score = 0;
    *length = 0;
    for (bool over = false; !over && *length < rules.max_actions; ++*length) {
      Observation rows;
      double cumulative[kActions], reward;
      if (!game.observe(rows)) return false;
      {
        const DefaultArithmetic arithmetic;
        kernel.policy(policy, rows, cumulative);
      }
      if (!game.act(sample(cumulative, actions.uniform()), rules.sticky, &reward, &over)) return false;
      *score += reward;
    }
    return true;
  }
};

PyObject* run_opaque(PyObject*, PyObject* args) {
  PyObject* start;
  Buffer mask_bytes, weights;
  Rules rules;
  int first, count;
  const char* kernel_name;
  if (!PyArg_ParseTuple(args, "Oy*y*iiO&O&diz", &start, &mask_bytes.view, &weights.view, &first, &count, read_word,
                        &rules.env_seed, read_word, &rules.action_seed, &rules.sticky, &rules.max_actions,
                        &kernel_name))
    return nullptr;
  const std::vector<uint8_t> masks = mask_bytes.take<uint8_t>();
  const Kernel* kernel = find_kernel(kernel_name);
  if (kernel == nullptr || !check_masks(masks) || !check_rules(rules, first, count)) return nullptr;
  const auto policy = read_policy(weights);
  if (policy == nullptr) return nullptr;
  const OpaqueRun run{*policy, *kernel, rules, masks};
  std::vector<double> scores(count);
  std::vector<int32_t> lengths(count);
  for (int i = 0; i < count; ++i)
    if (!run.play(start, first + i, &scores[i], &lengths[i])) return nullptr;
  return Py_BuildValue("NN", to_bytes(scores.data(), count), to_bytes(lengths.data(), count));
}

}  // namespace
}  // namespace weightgym
