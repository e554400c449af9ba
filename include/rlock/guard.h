/*
 * Guarded writes: the lock's server executes a script or a command only if the
 * calling owner's hold has the lock at that moment. Look and write are one step
 * there: a process that was paused, or a command that comes late, changes
 * nothing. Everybody who changes the data has to do it so. Reading needs no
 * guard. Under the read side of a read-write lock (rw.h) others may write at
 * the same time. All of it: guard.md.
 *
 *     s = rlock_command(lk, NULL, "HINCRBY stock:%s left -1", item);
 *     if (s != RLOCK_OK)
 *         ...                          the lock may be another's by now
 *
 * The data lies on the lock's server; in a cluster in the lock's slot, made of
 * what stands in the first braces of a name: "{item:7}", "{item:7}:stock". The
 * server refuses what lies elsewhere, as far as it checks that. A call does not
 * wait for replicas, nor prolong the lease, nor undo what a script that fails
 * half-way has written. It blocks for at most one command_timeout_ms, the
 * script's own time included, and has a connection to itself for that time.
 *
 * *reply, unless reply is NULL, is the server's answer with RLOCK_OK, and its
 * error with RLOCK_ESERVER (REDIS_REPLY_ERROR; NULL if nothing was sent); else
 * NULL. Free it with freeReplyObject() of hiredis. A reply has at most 64 MiB
 * of text and 2^20 elements; integers are exact up to 2^53.
 *
 * All calls below answer
 *
 *   RLOCK_OK        executed while the lock was held, which may be lost since
 *   RLOCK_NOT_HELD  the calling owner holds nothing; the server was not asked
 *   RLOCK_LOST      not executed, and it will not be: the deadline has passed,
 *                   or the server says that another one, or nobody, has the
 *                   lock. The hold is lost from then on
 *   RLOCK_ESERVER   the server refused the call; or the script is no Lua, fails
 *                   (what it had written stays), or answers an error on
 *                   purpose. The hold is as it was
 *   RLOCK_EIO       no answer, or too large a one. If the message says that it
 *                   may have been executed: it was, or will yet be, as long as
 *                   this hold has the lock, or never. It is not sent again, and
 *                   not executed after a last unlock that answers RLOCK_OK
 *   RLOCK_EINVAL    also: a number of words that is negative or above
 *                   1,000,000, a script that begins with "#!", a format that is
 *                   none
 *   RLOCK_ENOTSUP   a Multi or Red lock. (Write by a member's own handle)
 *   RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
#ifndef RLOCK_GUARD_H
#define RLOCK_GUARD_H

#include <stdarg.h>

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redisReply;

/*
 * Executes a script (Lua, a NUL-terminated string) as EVAL does, and answers as
 * the top of this file says. The script finds its KEYS and ARGV as they are
 * given, and its errors have its own line numbers. What it answers on purpose
 * must not begin as some errors of the server do: guard.md, Scripts.
 *
 * keys, args  how many there are of each
 * argv        the keys, then the arguments; NULL if there are none
 * lens        their lengths in bytes; NULL: they are NUL-terminated strings
 */
RLOCK_API rlock_status rlock_eval(rlock *lk, const char *script, int keys,
                                  int args, const char **argv,
                                  const size_t *lens,
                                  struct redisReply **reply);

/*
 * Executes one command, put together as redisCommand() does: %s is a string, %b
 * bytes and their length (a size_t), and each is one word, or part of one,
 * whatever is in it; %d and the like are numbers. At most some 7,000 words.
 * Answers as the top of this file says; with RLOCK_ESERVER nothing has changed.
 */
RLOCK_API rlock_status rlock_command(rlock *lk, struct redisReply **reply,
                                     const char *format, ...);

/* Executes one command, as rlock_command(), with a list of arguments. */
RLOCK_API rlock_status rlock_vcommand(rlock *lk, struct redisReply **reply,
                                      const char *format, va_list ap);

/* Executes one command, as rlock_command(), of words as they are, at least one;
   lens as in rlock_eval(). */
RLOCK_API rlock_status rlock_command_argv(rlock *lk, struct redisReply **reply,
                                          int argc, const char **argv,
                                          const size_t *lens);

/* Tells what came of a start: what the blocking call answers, and its reply or
   NULL, which is freed when this returns. */
typedef void rlock_replied(rlock *lk, rlock_status s, struct redisReply *reply,
                           void *arg);

/*
 * Starts a call of those above, by the rules of rlock_acquire_start(): `done`
 * is told what the blocking call answers, or, if the owner was freed before it
 * was executed, RLOCK_CANCELED. Script, keys and arguments are copied. Its
 * time, one command_timeout_ms, runs from the start. Each call in flight takes
 * a connection of its own (of at most pool_size).
 *
 * RLOCK_OK        started, and `done` will be called. With any other status
 *                 nothing has been done, and it will not
 * RLOCK_EINVAL    as the blocking call, or as rlock_acquire_start()
 * RLOCK_ENOTSUP, RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_eval_start(rlock *lk, const char *script, int keys,
                                        int args, const char **argv,
                                        const size_t *lens, rlock_replied *done,
                                        void *arg);
RLOCK_API rlock_status rlock_command_start(rlock *lk, rlock_replied *done,
                                           void *arg, const char *format, ...);
RLOCK_API rlock_status rlock_vcommand_start(rlock *lk, rlock_replied *done,
                                            void *arg, const char *format,
                                            va_list ap);
RLOCK_API rlock_status rlock_command_argv_start(rlock *lk, int argc,
                                                const char **argv,
                                                const size_t *lens,
                                                rlock_replied *done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
