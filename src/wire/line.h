/*
 * A line: what is said over one connection, as bytes out, bytes in, and slots.
 * It knows no socket, no clock and no thread: who drives it takes the bytes
 * that are to be sent, tells how many the kernel has taken, and feeds what
 * came.
 *
 * A slot is one command that waits for its reply. Replies come in the order of
 * the commands, so the slots are a queue, and each ends exactly once: answered,
 * or failed with the line. A reply that nobody asked for, one that cannot be
 * the answer to what was asked, or one that is none, fails the line; it is
 * never used again, because a late reply would answer the next question. A
 * message to who listens on channels is no reply, whoever waits for one.
 *
 * What a failure means is known by the byte: a command of which the kernel has
 * not been given the last byte cannot be executed.
 *
 * A line belongs to one thread at a time. Of a connection that several use
 * (net/mux.h), each has a line of its own, and all of them are slots of one
 * more, which has the connection. Who drives several jobs puts their slots on
 * one line (run/trunk.h).
 */
#ifndef RL_WIRE_LINE_H
#define RL_WIRE_LINE_H

#include "base/error.h"
#include "base/list.h"
#include "wire/bytes.h"
#include "wire/raw_reply.h"
#include "wire/script.h"

typedef struct rl_line rl_line;
typedef struct rl_slot rl_slot;

struct rl_slot {
    rl_link link;      /* in the line's queue */
    rl_line *line;     /* NULL: it is in none */
    uint64_t end;      /* its last byte, counted since the line began */
    unsigned preface;  /* replies that come before its own, and say nothing */
    uint8_t more;      /* replies that are to come behind the first, to commands
                          that went behind it; push sets it to 0 */
    unsigned replies;  /* RL_REPLY_BITs of what may answer it, beside an error;
                          0: anything. Something else fails the line. */
    bool subscribes;   /* it says what is listened to: what tells of that is its
                          answer, and nobody else's */
    rl_raw_reply *raw; /* gets its reply whole; NULL: the line's is enough */
    /*
     * The reply is the line's, and goes with the next one. Both may push
     * another slot.
     */
    void (*answered)(rl_slot *s, const rl_reply *r, int64_t now_us);
    /* whole: the kernel was given all of it, so it may be executed */
    void (*failed)(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us);
};

struct rl_line {
    redisReader *reader;
    rl_bytes out;
    uint64_t written, sent; /* bytes since the line began */
    /* Where the latest call ends that brought a script; 0: none has. */
    uint64_t brought[RL_SCRIPT_COUNT];
    rl_list slots;
    size_t pending; /* how many slots there are */
    bool asked;     /* the reply under way was, when it began */
    bool failed;
    bool retired; /* gives the answers that it owes, and is asked no more */
    bool mute;    /* nothing more is sent: a command may have gone in part */
    bool odd; /* who was answered found no sense in it, though it is of a type
                 that it may have: the line fails */
    bool lenient;   /* its server knows no first line by which it would refuse
                       a script's keys of other slots */
    rl_fault fault; /* why it failed, or is mute */
    int64_t failed_us; /* when it failed */
    /* For a subscriber: gets what nobody asked for; NULL: that is a failure. */
    void (*pushed)(void *arg, const rl_reply *r);
    void *arg;
    rl_reply reply; /* being read */
    size_t budget;  /* bytes of one text in a reply that is no object */
};

bool rl_line_init(rl_line *l); /* false: out of memory */
void rl_line_fini(rl_line *l); /* there are no slots any more */

/*
 * Between the two, a command is written to the bytes that begin returns. False:
 * memory was lacking, or the line has failed or is mute; nothing of it will be
 * sent, and the slot is in no line. NULL: a command whose reply is pushed.
 */
static inline rl_bytes *rl_line_begin(rl_line *l)
{
    return &l->out;
}

bool rl_line_push(rl_line *l, rl_slot *s);

/* The next bytes to be sent; and how many of them have been. */
static inline size_t rl_line_bytes(const rl_line *l, const char **bytes)
{
    *bytes = l->out.at ? l->out.at + l->out.begin : NULL;
    return (size_t)(l->written - l->sent);
}

void rl_line_sent(rl_line *l, size_t n);

/*
 * All of them, for somebody who sends them without the line; they count as
 * sent from now on. *into has none, and its memory goes to the line.
 */
void rl_line_take(rl_line *l, rl_bytes *into);

/* Bytes that came. False: the line has failed. */
bool rl_line_feed(rl_line *l, const char *bytes, size_t n, int64_t now_us);

/*
 * Of the bytes that count as sent, so many were not and never will be: ends the
 * slots whose commands are not whole. The others get their replies; but what one
 * of them would have said more (behind "NOSCRIPT"), the server would take for
 * the rest of the command that was begun. So the line is mute.
 */
void rl_line_drop(rl_line *l, const rl_fault *why, size_t unsent,
                  int64_t now_us);

/* A reply that somebody else has read. False: the same. */
bool rl_line_answer(rl_line *l, const rl_reply *r, int64_t now_us);

/* Ends every slot; and because the first took too long. */
void rl_line_fail(rl_line *l, const rl_fault *why, int64_t now_us);
void rl_line_time_out(rl_line *l, int64_t now_us);

/*
 * Ends one slot that took too long, on a line that others wait on: its reply is
 * nobody's, and theirs come behind it. The line is asked no more. What was not
 * sent will not be.
 */
void rl_line_abandon(rl_line *l, rl_slot *s, int64_t now_us);

/* Can more be said? */
static inline bool rl_line_speaks(const rl_line *l)
{
    return !l->failed && !l->mute;
}

/* Is there nothing more to be had from it? */
static inline bool rl_line_is_spent(const rl_line *l)
{
    return l->failed || (l->retired && l->pending == 0);
}

/* Has a part of a reply been read? */
bool rl_line_is_mid_reply(const rl_line *l);

/* The slot that is answered next, or NULL. */
static inline rl_slot *rl_line_first(const rl_line *l)
{
    rl_link *first = rl_list_first(&l->slots);
    return first ? RL_CONTAINER(first, rl_slot, link) : NULL;
}

#endif
