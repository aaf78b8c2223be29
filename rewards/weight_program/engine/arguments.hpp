// SPDX-License-Identifier: Apache-2.0
// Arguments from Python, checked: no call can reach past a buffer, and no other thread can change what was checked.
// Included by module.cpp alone.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "episodes.hpp"

namespace weightgym {
namespace {

/// A borrowed view of a bytes-like argument.
struct Buffer {
  Py_buffer view = {};
  ~Buffer() {
    if (view.obj != nullptr) PyBuffer_Release(&view);
  }
  Py_ssize_t size() const { return view.len; }

  /// Its values, whatever its address (a part of one at the end is left out), and the argument is let go: without the
  /// GIL another thread may change it, or the interpreter end.
  template <class T>
  std::vector<T> take() {
    std::vector<T> copy(view.len / sizeof(T));
    if (!copy.empty()) std::memcpy(copy.data(), view.buf, copy.size() * sizeof(T));
    PyBuffer_Release(&view);
    return copy;
  }
};

const Kernel* const kKernels[] = {&kKernelV3, &kKernelBaseline};

/// The kernel of that name; the fastest that this processor runs for a null name. Sets an exception.
const Kernel* find_kernel(const char* name) {
  for (const Kernel* kernel : kKernels)
    if (kernel->supported() && (name == nullptr || std::strcmp(name, kernel->name) == 0)) return kernel;
  PyErr_Format(PyExc_ValueError, "no kernel %s on this processor: kernels() lists them", name);
  return nullptr;
}

/// Whether each mask has six bits, and there are at most 16. Sets an exception.
bool check_masks(const std::vector<uint8_t>& masks) {
  bool good = masks.size() <= 16;
  for (const uint8_t mask : masks) good = good && mask <= 63;
  if (!good) PyErr_SetString(PyExc_ValueError, "masks: want at most 16 channel masks of six bits");
  return good;
}

/// The game of a capsule, with masks that cover its channels. Sets an exception.
const Game* find_game(PyObject* capsule, const std::vector<uint8_t>& masks) {
  const auto* game = static_cast<const Game*>(PyCapsule_GetPointer(capsule, kGameCapsule));
  if (game == nullptr) return nullptr;
  if (game->abi != kGameAbi || game->state_bytes > kMaxStateBytes) {
    PyErr_Format(PyExc_ImportError, "game built for interface %u, the engine has %u: reinstall weightgym", game->abi,
                 kGameAbi);
    return nullptr;
  }
  if (masks.size() != game->native_channels) {
    PyErr_Format(PyExc_ValueError, "%s has %u native channels, got %zd masks", game->name, game->native_channels,
                 static_cast<Py_ssize_t>(masks.size()));
    return nullptr;
  }
  return check_masks(masks) ? game : nullptr;
}

/// The policy in a float32 buffer. Sets an exception.
std::unique_ptr<Policy> read_policy(Buffer& weights) {
  if (weights.size() != static_cast<Py_ssize_t>(kParameters * sizeof(float))) {
    PyErr_Format(PyExc_ValueError, "weights: want %d float32 values, got %zd bytes", kParameters, weights.size());
    return nullptr;
  }
  const std::vector<float> flat = weights.take<float>();
  const DefaultArithmetic arithmetic;  // subnormal weights count
  for (int i = 0; i < kParameters; ++i)
    if (!std::isfinite(flat[i])) {
      PyErr_Format(PyExc_ValueError, "weights: value %d is not finite", i);
      return nullptr;
    }
  return std::make_unique<Policy>(flat.data());
}

/// Converter for PyArg_ParseTuple: a seed, or the bits of a float32; what doesn't fit is an error, not wrapped.
int read_word(PyObject* object, void* out) {
  const unsigned long value = PyLong_AsUnsignedLong(object);
  if (value == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) return 0;
  if (value > UINT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "%lu is out of range: want 0 to 4294967295", value);
    return 0;
  }
  *static_cast<uint32_t*>(out) = static_cast<uint32_t>(value);
  return 1;
}

bool check_sticky(double sticky) {
  if (sticky >= 0.0 && sticky <= 1.0) return true;
  PyErr_SetString(PyExc_ValueError, "sticky is a probability: want 0 to 1");
  return false;
}

bool check_rules(const Rules& rules, int first, int count) {
  constexpr int kMost = 1000000;
  const bool small = first <= kMost && count <= kMost && rules.max_actions <= kMost;
  if (small && first >= 0 && count >= 0 && rules.max_actions >= 0) return check_sticky(rules.sticky);
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

}  // namespace
}  // namespace weightgym
