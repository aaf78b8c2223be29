// SPDX-License-Identifier: GPL-3.0-only
// The Python door of the five originals: weightgym.rewards.weight_program._originals. The games are MinAtar's, by
// Kenny Young and Tian Tian (GPL-3.0); the code is ours.
#include <Python.h>

#include "games.hpp"

namespace {

using weightgym::Game;
namespace originals = weightgym::originals;

const Game* const kGames[] = {&originals::kAsterix, &originals::kBreakout, &originals::kFreeway,
                              &originals::kSeaquest, &originals::kSpaceInvaders};
constexpr Py_ssize_t kGameCount = sizeof(kGames) / sizeof(kGames[0]);

PyObject* game(PyObject*, PyObject* name) {
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "name: want a string such as \"breakout\", got %R", name);
    return nullptr;
  }
  for (const Game* known : kGames)
    if (PyUnicode_CompareWithASCIIString(name, known->name) == 0)
      return PyCapsule_New(const_cast<Game*>(known), weightgym::kGameCapsule, nullptr);
  PyErr_Format(PyExc_KeyError, "name: no original game %R; names() lists them", name);
  return nullptr;
}

PyObject* names(PyObject*, PyObject*) {
  PyObject* all = PyTuple_New(kGameCount);
  for (Py_ssize_t i = 0; all != nullptr && i < kGameCount; ++i) {
    PyObject* name = PyUnicode_FromString(kGames[i]->name);
    if (name == nullptr || PyTuple_SetItem(all, i, name) != 0) Py_CLEAR(all);
  }
  return all;
}

PyMethodDef methods[] = {
    {"game", game, METH_O,
     "game(name, /)\n--\n\n"
     "The original game of that name, as the capsule \"weightgym.game\" that the engine plays.\n\n"
     "Raises:\n    KeyError: there is no such game.\n    TypeError: the name is not a string."},
    {"names", names, METH_NOARGS, "names()\n--\n\nThe names of the five original games, sorted."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef_Slot slots[] = {{0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_originals",
                          "The five games of MinAtar 1.0.15, ramping off, for the fast engine (GPL-3.0-only).",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__originals() { return PyModuleDef_Init(&definition); }
