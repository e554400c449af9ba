"""The shared library: where it is, its structs, its functions.

Structs that the library fills, or is given, say their size, so that this module
knows no more members than stand here (include/rlock/base.h).
"""
from __future__ import annotations

import ctypes as c
import os
from typing import Callable

SONAME = "librlock.so.0.3"

KIND_PERMIT = 3  # base.h

i64, u64, size_t = c.c_int64, c.c_uint64, c.c_size_t
pointer, text, status = c.c_void_p, c.c_char_p, c.c_int


def c_text(of: bytes) -> bytes:
    """C would see what stands before a NUL, and nothing of the rest."""
    if b"\0" in of:
        raise ValueError("embedded null byte")
    return of


class ErrorStruct(c.Structure):
    _fields_ = [("status", status), ("sys_errno", c.c_int),
                ("message", c.c_char * 256)]


class EventStruct(c.Structure):
    _fields_ = [("type", c.c_int), ("name", pointer), ("name_len", size_t),
                ("token", u64), ("count", c.c_int), ("elapsed_ms", i64),
                ("status", status), ("message", text), ("owner", text),
                ("kind", c.c_int)]


class HolderStruct(c.Structure):
    _fields_ = [("host", c.c_char * 256), ("pid", i64), ("tid", i64),
                ("hold_id", c.c_char * 37), ("count", i64), ("ttl_ms", i64),
                ("raw", c.c_char * 512), ("owner", c.c_char * 64)]


class LockInfoStruct(c.Structure):
    _fields_ = [("name", pointer), ("name_len", size_t), ("kind", c.c_int),
                ("layout", c.c_int), ("holders", c.POINTER(HolderStruct)),
                ("n_holders", size_t), ("holders_in_all", i64),
                ("waiting", i64), ("ttl_ms", i64), ("token", u64),
                ("held_ms", i64), ("foreign", c.c_bool), ("available", i64)]


class StatsStruct(c.Structure):
    _fields_ = [(name, u64) for name in (
        "acquires", "acquires_contended", "acquires_failed", "releases",
        "renewals", "renew_failures", "lost", "wakeups", "wakeups_futile",
        "passes", "reconnects", "script_loads", "held_now", "waiting_now",
        "wait_us_total", "hold_us_total", "failovers", "refreshes",
        "redirects", "nodes", "replica_shortfalls")]


class CredentialsStruct(c.Structure):
    _fields_ = [("user", text), ("password", text), ("valid_ms", i64)]


ON_EVENT = c.CFUNCTYPE(None, c.POINTER(EventStruct), pointer)
CREDENTIALS = c.CFUNCTYPE(c.c_int, c.POINTER(CredentialsStruct), pointer)
DONE = c.CFUNCTYPE(None, pointer, status, pointer)
REPLIED = c.CFUNCTYPE(None, pointer, status, pointer, pointer)
EACH_LOCK = c.CFUNCTYPE(c.c_bool, c.POINTER(LockInfoStruct), pointer)


class Options(c.Structure):
    _fields_ = [
        ("size", size_t), ("uri", text), ("connect", pointer),
        ("connect_arg", pointer), ("connect_timeout_ms", i64),
        ("command_timeout_ms", i64), ("watchdog_lease_ms", i64),
        ("max_hold_ms", i64), ("pool_size", c.c_uint), ("host_id", text),
        ("on_event", ON_EVENT), ("event_arg", pointer),
        ("redisson_channel", c.c_bool), ("lazy", c.c_bool), ("turn_ms", i64),
        ("tls_ca_file", text), ("tls_ca_dir", text), ("tls_cert_file", text),
        ("tls_key_file", text), ("tls_server_name", text),
        ("tls_verify", c.c_int), ("tls_setup", pointer),
        ("tls_setup_arg", pointer), ("credentials", CREDENTIALS),
        ("credentials_arg", pointer), ("sentinel_user", text),
        ("sentinel_password", text), ("min_replicas", c.c_uint),
        ("replica_wait_ms", i64), ("dispatch_events", c.c_bool),
        ("no_deadlock_check", c.c_bool)]


class LockOptions(c.Structure):
    _fields_ = [("size", size_t), ("layout", c.c_int),
                ("local_levels", c.c_bool), ("min_replicas", c.c_int),
                ("fair", c.c_bool), ("no_tokens", c.c_bool)]


class RedOptions(c.Structure):
    _fields_ = [("size", size_t), ("layout", c.c_int),
                ("longest_lease_ms", i64), ("check_uptime", c.c_bool)]


_words = [text, c.c_int, c.c_int, c.POINTER(text), c.POINTER(size_t)]
_command = [c.c_int, c.POINTER(text), c.POINTER(size_t)]
_FUNCTIONS = {
    "rlock_status_str": (text, status),
    "rlock_last_error": (c.POINTER(ErrorStruct),),
    "rlock_version": (text,),
    "rlock_client_new": (status, c.POINTER(Options), c.POINTER(pointer)),
    "rlock_client_close": (status, pointer, c.c_uint),
    "rlock_client_ping": (status, pointer),
    "rlock_client_cancel": (status, pointer, c.c_bool),
    "rlock_client_stats": (status, pointer, c.POINTER(StatsStruct), size_t),
    "rlock_client_fd": (c.c_int, pointer),
    "rlock_client_dispatch": (status, pointer),
    "rlock_scan": (status, pointer, text, c.c_uint, EACH_LOCK, pointer),
    "rlock_new_ex": (status, pointer, text, size_t, c.POINTER(LockOptions),
                     c.POINTER(pointer)),
    "rlock_multi_new": (status, c.POINTER(pointer), size_t,
                        c.POINTER(pointer)),
    "rlock_red_new_ex": (status, c.POINTER(pointer), size_t, text, size_t,
                         c.POINTER(RedOptions), c.POINTER(pointer)),
    "rlock_free": (None, pointer),
    "rlock_acquire": (status, pointer, i64, i64),
    "rlock_unlock": (status, pointer),
    "rlock_extend": (status, pointer, i64),
    "rlock_force_unlock": (status, pointer),
    "rlock_cancel": (None, pointer),
    "rlock_is_held": (c.c_bool, pointer),
    "rlock_hold_count": (c.c_int, pointer),
    "rlock_valid_ms": (i64, pointer),
    "rlock_token": (u64, pointer),
    "rlock_lost_fd": (c.c_int, pointer),
    "rlock_is_locked": (status, pointer, c.POINTER(c.c_bool)),
    "rlock_ttl": (status, pointer, c.POINTER(i64)),
    "rlock_holder_info": (status, pointer, c.POINTER(HolderStruct), size_t),
    "rlock_acquire_start": (status, pointer, i64, i64, DONE, pointer),
    "rlock_unlock_start": (status, pointer, DONE, pointer),
    "rlock_extend_start": (status, pointer, i64, DONE, pointer),
    "rlock_eval": (status, pointer, *_words, pointer),
    "rlock_eval_start": (status, pointer, *_words, REPLIED, pointer),
    "rlock_command_argv": (status, pointer, pointer, *_command),
    "rlock_command_argv_start": (status, pointer, *_command, REPLIED, pointer),
    "rlock_owner_new": (status, text, c.POINTER(pointer)),
    "rlock_owner_free": (None, pointer),
    "rlock_owner_cancel": (None, pointer),
    "rlock_owner_set": (pointer, pointer),
}


def _missing(name: str, where: str, version: str) -> Callable:
    """Stands for a function that a later version has added: the rest works."""
    def call(*_: object) -> None:
        from ._errors import NotSupported, Status
        raise NotSupported(Status.ENOTSUP, f"{where} is of version {version}, and "
                           f"has no {name}(): a later version has")
    return call


def _load() -> c.CDLL:
    where = os.environ.get("RLOCK_LIBRARY") or SONAME
    try:
        it = c.CDLL(where)
        version = it.rlock_version
    except OSError as e:
        raise ImportError(
            f"rlock needs its C library: {e} (install it, or say in "
            f"$RLOCK_LIBRARY where {SONAME} is)") from None
    except AttributeError:
        raise ImportError(f"{where} has no rlock_version(): this module is for "
                          f"{SONAME}") from None
    version.restype = text
    found = version().decode()
    if not found.startswith(SONAME.split(".so.")[1] + "."):
        raise ImportError(f"{where} is of version {found}: this module is for "
                          f"{SONAME}")
    for name, (result, *arguments) in _FUNCTIONS.items():
        try:
            function = getattr(it, name)
            function.restype, function.argtypes = result, arguments
        except AttributeError:
            setattr(it, name, _missing(name, where, found))
    return it


# Its calls release the interpreter's lock, and callbacks take it.
lib = _load()
