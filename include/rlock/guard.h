/*
 * Guarded writes: the fence that nobody has to remember.
 *
 * A script or a command is sent to the lock's own server, and executed there
 * only if the calling owner's hold has the lock at that moment. Look and write
 * are one step on the server, so a process that was paused for an hour, or a
 * command that was under way for as long, changes nothing: RLOCK_LOST. What
 * rlock_token() is for where the data lies elsewhere, this is for data beside
 * the lock: nothing has to be stored with it, compared, or thought of by
 * whoever writes.
 *
 *     s = rlock_command(lk, NULL, "HINCRBY stock:%s left -1", item);
 *     if (s != RLOCK_OK)
 *         ...                          the lock may be another's by now
 *
 * Everybody who changes the data has to do it this way. Reading needs no guard,
 * and what is read by a guarded call is as it was while the lock was held.
 *
 * Where the data has to be. On the lock's server; in a cluster, in the lock's
 * slot. Slots are made of what stands in the first braces of a name, so a lock
 * called "{item:7}" and keys like "{item:7}:stock" and "{item:7}:log" lie
 * together. The call goes where the lock is, and the server refuses what lies
 * elsewhere (RLOCK_ESERVER), as far as it checks that:
 *
 *   another server's key         always
 *   another slot of the lock's own server:
 *     a key of rlock_eval()      always
 *     a key of a command         since Redis 7, but not while that takes no
 *                                writes (no memory, replicas or disk for them)
 *     what a script does with a  never. It is executed, until that slot moves:
 *     name that is no key of it  a script should have all its keys in KEYS
 *
 * The server's rules for scripts hold: what the user may not do, or a script
 * may not (SUBSCRIBE, MULTI, BLPOP waiting), it refuses.
 *
 * Which locks. Those of rlock_new(), in every layout. Not those of several
 * servers or names (rlock_red_new(), rlock_multi_new()): RLOCK_ENOTSUP. But who
 * holds a Multi lock holds its members, and can write by their own handles.
 *
 * What it does not do. It does not wait for replicas, also with min_replicas:
 * what was written can be lost by a failover like any write to Redis, after
 * which the old hold is not known either. It does not prolong the lease. It
 * undoes nothing: a script that fails half-way leaves what it has written.
 *
 * Replies. They are hiredis' (<hiredis/hiredis.h>), whole: arrays in arrays as
 * deep as the installed hiredis reads (7 levels before version 1.0), errors in
 * arrays, 64 MiB of text, 2^20 elements of arrays. One that is larger is
 * RLOCK_EIO, though the script was executed. As scripts answer, numbers pass
 * through Lua: integers are exact up to 2^53.
 * A call has a connection to itself until its reply is there, so nobody stands
 * behind a large one. Other threads share with it the link, where they take as
 * much longer as it is full; the server, which makes one reply at a time; and
 * pool_size: if that is 1, they wait until all of it has come.
 *
 * All calls below answer
 *
 *   RLOCK_OK        executed while the lock was held. (The hold may have been
 *                   lost since, as ever: rlock_is_held() tells.)
 *   RLOCK_NOT_HELD  the calling owner holds nothing; the server was not asked
 *   RLOCK_LOST      not executed, and it will not be: the deadline has passed,
 *                   or the server says that another one, or nobody, has the
 *                   lock. The hold is lost from then on, as by rlock_extend()
 *   RLOCK_ESERVER   the server answered with an error, whose text is in the
 *                   message: it refused the call, the script is no Lua, or
 *                   fails (what it had written before stays), or answered an
 *                   error on purpose (redis.error_reply). The hold is as it was
 *   RLOCK_EIO       no answer. If the message says that it may have been
 *                   executed: it was, or will yet be, as long as this hold has
 *                   the lock, or never. It is not sent again. After the last
 *                   unlock, if that answers RLOCK_OK, it will not be any more
 *   RLOCK_EINVAL    a pointer that is NULL, a number of words that is negative
 *                   or above 1,000,000, a script that begins with "#!", a
 *                   format that is none. Nothing was sent
 *   RLOCK_ENOTSUP   a lock of several servers or names
 *   RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 *
 * and block for at most one command_timeout_ms, the script's own time included.
 * Several threads may call them; each is an owner of its own.
 *
 * *reply, unless reply is NULL, is the server's answer with RLOCK_OK; with
 * RLOCK_ESERVER it is the error as hiredis has it (type REDIS_REPLY_ERROR), or
 * NULL if that was said before the call was sent; else NULL. The caller frees
 * it with freeReplyObject(), which accepts NULL since hiredis 0.14.
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
 * Executes a script (Lua, a NUL-terminated string) as EVAL does.
 *
 * keys, args  how many there are of each
 * argv        the keys, then the arguments; NULL if there are none
 * lens        their lengths in bytes; NULL: they are NUL-terminated strings
 *
 * The script finds its KEYS and ARGV as they are given here, and errors in it
 * have its own line numbers. It travels once: then by its SHA1, until the
 * server forgets it. Like any script it should take its data as arguments and
 * not in its text, or the server has a new script to keep with each call.
 *
 * An error that the script answers on purpose must not begin with the server's
 * words for "not executed, ask again": NOSCRIPT No matching script, MOVED, ASK,
 * TRYAGAIN Multiple keys, CLUSTERDOWN, MASTERDOWN Link with MASTER, LOADING.
 * A "#!" line, by which Redis 7 takes flags, is refused, because it would have
 * to stand in front of the check.
 *
 * Outcomes: see the top of this file.
 */
RLOCK_API rlock_status rlock_eval(rlock *lk, const char *script, int keys,
                                  int args, const char **argv,
                                  const size_t *lens,
                                  struct redisReply **reply);

/*
 * Executes one command, put together as redisCommand() does: %s is a string, %b
 * bytes and their length (a size_t), and each is one word, or part of one,
 * whatever is in it; %d and the like are numbers.
 *
 * The command's keys are not known here, so the call is routed by the lock's
 * own. While a cluster moves the slot, a command about data that is elsewhere
 * already is put off until the lock is there, too. A command has at most some
 * 7,000 words.
 *
 * Outcomes: see the top of this file. RLOCK_ESERVER: the command was refused,
 * or failed, and has changed nothing.
 */
RLOCK_API rlock_status rlock_command(rlock *lk, struct redisReply **reply,
                                     const char *format, ...);

/* The same with a list of arguments. */
RLOCK_API rlock_status rlock_vcommand(rlock *lk, struct redisReply **reply,
                                      const char *format, va_list ap);

/* The same with words as they are, at least one; lens as in rlock_eval(). */
RLOCK_API rlock_status rlock_command_argv(rlock *lk, struct redisReply **reply,
                                          int argc, const char **argv,
                                          const size_t *lens);

/* --- on an event loop (async.h) ------------------------------------------- */

/*
 * What came of a call that was started; arg is what was given there. The reply
 * is what the blocking call gives out, or NULL, and is freed when this returns:
 * as with hiredis' own callbacks, who wants to keep something copies it.
 */
typedef void rlock_replied(rlock *lk, rlock_status s, struct redisReply *reply,
                           void *arg);

/*
 * As the calls above, for the owner that the calling thread acts as, without
 * blocking: the server is asked by the client, and rlock_client_dispatch()
 * calls `done`, by the same rules as for rlock_acquire_start(). Script, keys
 * and arguments are copied, and may go as soon as the start has returned.
 *
 * `done` is told what the blocking call returns. Its time, one
 * command_timeout_ms, runs from the start. If the owner is freed meanwhile,
 * what has been executed is RLOCK_OK all the same, with its reply; what was not
 * any more, because the hold is abandoned, is RLOCK_CANCELED. Each call in
 * flight takes a connection of its own (of at most pool_size), as its answer
 * may be large, so nothing that is small waits behind it.
 *
 * RLOCK_OK        it has been started, and `done` (unless NULL) will be called
 * RLOCK_EINVAL    as above, or as for rlock_acquire_start(): the thread acts as
 *                 no owner, or the owner has an operation under way
 * RLOCK_ENOTSUP   as above
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 *
 * Unless RLOCK_OK, nothing has been done and `done` is not called. That the
 * owner holds nothing is told to `done`.
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
