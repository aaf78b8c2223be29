"""The system calls that a phase may make: a filter of classic BPF, built and installed here.

It is a list of what is allowed. All else fails with EPERM (or ENOSYS, if it is newer than this list: libraries then
fall back on older calls). So there are no sockets, mounts, new namespaces, ptrace, process_vm_*, io_uring, userfaultfd,
bpf, keys, perf events, System V memory, memfds, inotify, handles or pidfds; without ``multiprocess`` no fork, no exec.
Nothing steers or asks for the kernel's cache of files (fadvise, readahead, mincore): phases could talk through it.
Numbers are from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

#: name : number on x86_64 : number on aarch64
_ALWAYS = """
read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
preadv2:327:286 pwritev2:328:287 close:3:57 close_range:436:436 lseek:8:62 open:2:- openat:257:56 creat:85:-
dup:32:23 dup2:33:- dup3:292:24 pipe:22:- pipe2:293:59 poll:7:- ppoll:271:73 select:23:- pselect6:270:72
epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22
epoll_pwait2:441:441 eventfd:284:- eventfd2:290:19 timerfd_create:283:85 timerfd_settime:286:86
timerfd_gettime:287:87 stat:4:- fstat:5:80 lstat:6:- newfstatat:262:79 statx:332:291 statfs:137:43
fstatfs:138:44 access:21:- faccessat:269:48 faccessat2:439:439 readlink:89:- readlinkat:267:78 getdents:78:-
getdents64:217:61 getcwd:79:17 chdir:80:49 fchdir:81:50 mkdir:83:- mkdirat:258:34 rmdir:84:- unlink:87:-
unlinkat:263:35 rename:82:- renameat:264:38 renameat2:316:276 link:86:- linkat:265:37 symlink:88:-
symlinkat:266:36 truncate:76:45 ftruncate:77:46 fallocate:285:47 chmod:90:- fchmod:91:52 fchmodat:268:53
utimensat:280:88 umask:95:166 fsync:74:82 fdatasync:75:83 flock:73:32 sendfile:40:71 copy_file_range:326:285
getxattr:191:8 lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11
llistxattr:195:12 flistxattr:196:13 mmap:9:222 munmap:11:215 mprotect:10:226 mremap:25:216 brk:12:214
madvise:28:233 msync:26:227 mlock:149:228 munlock:150:229 membarrier:324:283
get_mempolicy:239:236 exit:60:93 exit_group:231:94 getpid:39:172 getppid:110:173 gettid:186:178 getuid:102:174
geteuid:107:175 getgid:104:176 getegid:108:177 getgroups:115:158 getresuid:118:148 getresgid:120:150
getpgid:121:155 getpgrp:111:- getsid:124:156 getpriority:140:141 getrlimit:97:163 setrlimit:160:164
prlimit64:302:261 getrusage:98:165 times:100:153 uname:63:160 sysinfo:99:179 getcpu:309:168 sched_yield:24:124
sched_getaffinity:204:123 sched_setaffinity:203:122 sched_getparam:143:121 sched_getscheduler:145:120
sched_get_priority_max:146:125 sched_get_priority_min:147:126 set_tid_address:218:96 set_robust_list:273:99
get_robust_list:274:100 rseq:334:293 futex:202:98 prctl:157:167 arch_prctl:158:- wait4:61:260 waitid:247:95
kill:62:129 tkill:200:130 tgkill:234:131 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139
rt_sigpending:127:136 rt_sigsuspend:130:133 rt_sigtimedwait:128:137 sigaltstack:131:132 pause:34:- alarm:37:-
setitimer:38:103 getitimer:36:102 nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113
clock_getres:229:114 gettimeofday:96:169 time:201:- timer_create:222:107 timer_settime:223:110
timer_gettime:224:108 timer_delete:226:111 timer_getoverrun:225:109 restart_syscall:219:128 getrandom:318:278
"""
_MULTIPROCESS = """
fork:57:- vfork:58:- execve:59:221 setsid:112:157 setpgid:109:154 bind:49:200 connect:42:203 listen:50:201
accept:43:202 accept4:288:242 getsockname:51:204 getpeername:52:205 sendto:44:206 recvfrom:45:207 sendmsg:46:211
recvmsg:47:212 sendmmsg:307:269 recvmmsg:299:243 shutdown:48:210 setsockopt:54:208 getsockopt:55:209
"""
#: What CUDA needs more.
_GPU = """
memfd_create:319:279 mbind:237:235 set_mempolicy:238:237 mlock2:325:284
"""
#: Looked at more closely below.
_CLOSER = """
clone:56:220 clone3:435:435 fcntl:72:25 ioctl:16:29 socket:41:198 socketpair:53:199
"""
#: The newest call that the tables above were made with.
_NEWEST = 451
#: By ``os.uname().machine``: the kernel's AUDIT_ARCH number, and the column of the tables.
_ARCHITECTURES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}
_X32_BIT = 0x40000000

_CLONE_THREAD = 0x00010000
_CLONE_PARENT = 0x00008000
#: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
#: SETOWN, SETSIG, SETOWN_EX, SETLEASE, NOTIFY, SETPIPE_SZ: signals, leases on shared files, large kernel buffers.
_FCNTL_DENIED = (8, 10, 15, 1024, 1026, 1031)
#: TCGETS and TIOCGWINSZ (isatty), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
_AF_UNIX, _AF_INET, _AF_NETLINK = 1, 2, 16
_NETLINK_ROUTE = 0

_LOAD, _EQUAL, _GREATER, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_EPERM, _ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data; arguments are 64 bits each, the low half first

_Instruction = tuple[int, int, int, int]


def program(machine: str, *, multiprocess: bool = False, gpu: bool = False) -> bytes:
    """The filter, an array of ``struct sock_filter``.

    Raises:
        OSError: the machine is neither x86_64 nor aarch64.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    audit, column = _ARCHITECTURES[machine]
    tables = _ALWAYS + _MULTIPROCESS * multiprocess + _GPU * gpu
    allowed = sorted(set(_numbers(tables, column).values()))
    closer = _numbers(_CLOSER, column)
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in allowed:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    code += _when(closer["clone"], _clone(multiprocess))
    code += _when(closer["clone3"], [(_RETURN, 0, 0, _ENOSYS)])  # its flags are out of a filter's sight
    code += _when(closer["fcntl"], _one_of(1, _FCNTL_DENIED, _EPERM, otherwise=_ALLOW))
    code += _when(closer["ioctl"], [(_RETURN, 0, 0, _ALLOW)] if gpu else _one_of(1, _IOCTL_ALLOWED, _ALLOW))
    if multiprocess:
        code += _when(closer["socket"], _sockets())
        code += _when(closer["socketpair"], _one_of(0, (_AF_UNIX,), _ALLOW))
    code += [(_GREATER, 0, 1, _NEWEST), (_RETURN, 0, 0, _ENOSYS), (_RETURN, 0, 0, _EPERM)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def install(filter_program: bytes) -> None:
    """Put the filter on this thread and all that it starts; nothing takes it off again.

    Raises:
        OSError: the kernel refused.
    """

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    argument = Program(len(filter_program) // 8, filter_program)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    for arguments in (
        (no_new_privileges, 1, 0, 0, 0),
        (set_seccomp, filter_mode, ctypes.byref(argument), 0, 0),
    ):
        if libc.prctl(*(ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"seccomp: {os.strerror(number)}")


def _numbers(table: str, column: int) -> dict[str, int]:
    rows = (row.split(":") for row in table.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def _when(number: int, block: list[_Instruction]) -> list[_Instruction]:
    """The block for one system call; it must end with a return."""
    return [(_EQUAL, 0, len(block), number), *block]


def _one_of(argument: int, values: tuple[int, ...], verdict: int, otherwise: int = _EPERM) -> list[_Instruction]:
    block: list[_Instruction] = [(_LOAD, 0, 0, 16 + 8 * argument)]
    for value in values:
        block += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, verdict)]
    return [*block, (_RETURN, 0, 0, otherwise)]


def _sockets() -> list[_Instruction]:
    """AF_UNIX and AF_INET; and NETLINK_ROUTE, by which gloo and NCCL list the interfaces of the phase's own network."""
    block: list[_Instruction] = [(_LOAD, 0, 0, 16)]
    for family in (_AF_UNIX, _AF_INET):
        block += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    return [*block, *_when(_AF_NETLINK, _one_of(2, (_NETLINK_ROUTE,), _ALLOW)), (_RETURN, 0, 0, _EPERM)]


def _clone(multiprocess: bool) -> list[_Instruction]:
    """Threads; processes only with ``multiprocess``; never a namespace, never a sibling of the caller."""
    denied = _NEW_NAMESPACES | (_CLONE_PARENT if multiprocess else 0)  # threads may carry CLONE_PARENT
    block: list[_Instruction] = [(_LOAD, 0, 0, 16), (_BITS, 0, 1, denied), (_RETURN, 0, 0, _EPERM)]
    if not multiprocess:
        block += [(_BITS, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _EPERM)]
    return [*block, (_RETURN, 0, 0, _ALLOW)]
