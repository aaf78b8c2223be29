"""What may be used of the standard library and of PyTorch, by the longest matching prefix of its dotted path.

``legal`` entries make exceptions of what a shorter prefix forbids. A path that no entry covers is legal in PyTorch and
in the modules of ``PURE``; any other module is for review.
"""

from __future__ import annotations

from typing import Literal

from weightgym.rewards.golf.strings import words

Ruling = Literal["legal", "review", "illegal"]

#: Modules that compute: nothing in them reaches files, processes, the network or the interpreter.
PURE = words(
    "__future__ abc array base64 binascii bisect bz2 cmath collections contextlib copy csv dataclasses datetime "
    "decimal difflib enum fractions functools gzip hashlib heapq io itertools json keyword lzma math numbers "
    "operator pickle pprint random re statistics string struct textwrap time types typing unicodedata warnings "
    "zlib zoneinfo builtins torch colorsys graphlib weakref hmac locale reprlib stringprep sys os"
)

_ENVIRONMENT = (
    "os sys posix nt platform getpass pwd grp resource sysconfig site argparse optparse getopt locale ipaddress"
)
_FILES = (
    "pathlib shutil tempfile glob fileinput linecache tokenize mmap shelve dbm sqlite3 filecmp netrc plistlib "
    "builtins.license builtins.copyright builtins.credits io.open io.FileIO io.open_code io.OpenWrapper "
    "builtins.open codecs.open gzip.open bz2.open lzma.open logging.FileHandler "
    "torch.from_file torch.hub torch.package torch.utils.model_zoo torch.UntypedStorage.from_file "
    "torch.Storage.from_file "
    "torch.FloatStorage.from_file torch.Tensor.from_file torch.utils.file_baton pkgutil zipimport "
    "torch.jit.load torch.serialization.open"
)
_PROCESSES = (
    "subprocess multiprocessing threading _thread thread posixsubprocess concurrent asyncio signal.signal signal.alarm "
    "signal.setitimer signal.raise_signal signal.pthread_kill atexit pty sched faulthandler "
    "torch.multiprocessing torch.futures torch.distributed.launch torch.distributed.elastic torch.distributed.run "
    "builtins.help torch.utils.collect_env torch.utils.bottleneck builtins.exit builtins.quit "
    "builtins.breakpoint builtins.input pdb bdb"
)
_NETWORK = (
    "socket ssl http urllib ftplib smtplib poplib imaplib telnetlib nntplib xmlrpc socketserver select selectors "
    "webbrowser wsgiref cgi asyncore asynchat torch.distributed.TCPStore torch.distributed.FileStore "
    "torch.distributed.HashStore torch.distributed.init_process_group torch.distributed.rpc "
    "torch.distributed.rendezvous "
    "torch.distributed.Store torch.distributed.PrefixStore email mailbox uuid.getnode"
)
_INTROSPECTION = (
    "inspect gc importlib imp runpy dis codeop code ast symtable traceback trace tracemalloc cProfile profile "
    "pstats bdb "
    "builtins.globals.__getitem__ types.CodeType types.FunctionType types.FrameType types.ModuleType types.CellType "
    "builtins.__import__ builtins.eval builtins.exec builtins.compile builtins.__builtins__ builtins.__loader__ "
    "builtins.__spec__ builtins.__build_class__ marshal modulefinder pyclbr py_compile compileall zipapp ensurepip "
    "torch.utils._python_dispatch torch.overrides torch._C._dispatch torch.fx.experimental"
)
_NATIVE = (
    "ctypes cffi _ctypes torch.utils.cpp_extension torch.ops.load_library torch.classes torch._inductor.codecache "
    "torch._inductor.cpp_builder torch.utils._triton torch.cuda._compile_kernel distutils torch.cuda.jiterator"
)
_TRAINING = (
    "torch.optim torch.autograd.grad torch.autograd.backward torch.autograd.functional torch.autograd.forward_ad "
    "torch.func.grad torch.func.grad_and_value torch.func.vjp torch.func.jvp torch.func.jacrev torch.func.jacfwd "
    "torch.func.hessian torch.func.linearize torch._functorch.eager_transforms torch._functorch.apis functorch "
    "torch.autograd.graph._engine_run_backward "
    "torch.autograd.Variable.backward torch.Tensor.backward torch.distributed.optim torch.distributed.fsdp"
)
_PATCHING = (
    "unittest torch.library.Library torch.library.impl torch.library.register_kernel torch.library.register_autograd "
    "torch.nn.modules.module.register_module_forward_hook torch.nn.modules.module.register_module_forward_pre_hook "
    "torch.nn.modules.module.register_module_full_backward_hook torch.utils.register_extension "
    "torch.fx.wrap torch.utils.rename_privateuse1_backend"
)
_EVALUATOR = "weightgym mini_pg __main__"

#: Legal exceptions from the lists above.
_HARMLESS = (
    "sys.maxsize sys.byteorder sys.float_info sys.version_info sys.version sys.stderr sys.intern sys.getsizeof "
    "sys.hexversion sys.int_info sys.implementation.name os.sep os.linesep "
    "torch.overrides.has_torch_function torch.distributed.is_available torch.distributed.is_initialized"
)
_REVIEW = {
    "environment": "sys os.cpu_count os.path.join os.path.basename os.path.dirname sys.platform sys.getrecursionlimit "
    "sys.setrecursionlimit sys.stdout os.name torch.distributed platform os.urandom",
    "clock": "time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today",
    "processes": "threading.Lock threading.RLock threading.local signal concurrent.futures.Future "
    "torch.set_num_threads "
    "torch.set_num_interop_threads torch.cuda.set_device torch.set_default_device",
    "files": "gzip.GzipFile bz2.BZ2File lzma.LZMAFile zipfile tarfile logging torch.utils.data torch.serialization "
    "torch.onnx torch.export torch.profiler torch.autograd.profiler torch.utils.tensorboard torch.monitor",
    "introspection": "builtins.globals builtins.locals types.MethodType weakref torch._C torch.fx operator.call "
    "torch._dynamo torch._inductor traceback.format_exc traceback.print_exc pickle.loads pickle.load pickle.Unpickler "
    "builtins.memoryview.obj builtins.__file__ builtins.object.__getattribute__ torch.utils.weak",
    "native_code": "torch.compile torch.ops torch.library torch.cuda.graphs",
    "training": "torch.optim.swa_utils torch.enable_grad torch.set_grad_enabled torch.autograd.set_grad_enabled "
    "torch.autograd.enable_grad torch.autograd.graph.register_multi_grad_hook torch.set_default_dtype",
    "seed": "torch.initial_seed torch.get_rng_state torch.random.initial_seed torch.random.get_rng_state "
    "random.getstate "
    "torch.default_generator torch.cuda.initial_seed torch.cuda.get_rng_state",
    "subclass": "torch.Tensor._make_subclass torch.Tensor._make_wrapper_subclass torch.Tensor.as_subclass",
}
_ILLEGAL = {
    "environment": _ENVIRONMENT
    + " sys.modules sys.argv sys.orig_argv sys.path sys.meta_path sys.path_hooks sys.stdin sys.exit "
    "sys.__stdout__ sys.__stdin__ sys.__stderr__ sys.executable sys.prefix sys.addaudithook",
    "introspection": _INTROSPECTION + " sys._getframe sys._current_frames sys.settrace sys.setprofile sys.gettrace "
    "sys._current_exceptions sys.excepthook sys.displayhook sys.call_tracing sys.monitoring sys._getframemodulename",
    "files": _FILES,
    "processes": _PROCESSES,
    "network": _NETWORK,
    "native_code": _NATIVE,
    "training": _TRAINING,
    "patching": _PATCHING,
    "evaluator": _EVALUATOR,
}


def _table() -> dict[str, tuple[Ruling, str]]:
    table: dict[str, tuple[Ruling, str]] = {}
    for code, names in _ILLEGAL.items():
        table |= dict.fromkeys(names.split(), ("illegal", code))
    for code, names in _REVIEW.items():
        table |= dict.fromkeys(names.split(), ("review", code))
    return table | dict.fromkeys(_HARMLESS.split(), ("legal", "")) | {"traceback": ("review", "introspection")}


_TABLE = _table()


def ruling(path: str) -> tuple[Ruling, str]:
    """What the rules say of using the path, and the code of the family that it belongs to."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        known = _TABLE.get(".".join(parts[:end]))
        if known is not None:
            return known
    if path.startswith("builtins.") or parts[0] in PURE:
        return "legal", ""
    return "review", "unusual_module"
