/*
 * The screen of `top`, by ncurses. What is shown of one lock, and what breaks
 * it, are verbs of their own, which run in the terminal as they always do.
 */
#include "top.h"

#ifndef RLOCK_CURSES

bool top_screen(top *t, int *status)
{
    (void)t;
    (void)status;
    return false;
}

#else

#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os.h"

#define HEADS 2 /* lines above the locks */

typedef struct screen {
    top *t;
    size_t first, chosen; /* rows */
    bool holds, quits;
    int64_t next_us; /* when the next round is due */
    char glob[100];
} screen;

/* What is to end us, when the terminal is as it was: curses has a handler of its
   own, which ends a process with status 1. */
static volatile sig_atomic_t told;

static void note_signal(int sig)
{
    told = sig;
}

static void handle_signals(void (*handler)(int))
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction a = {.sa_handler = handler};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &a, NULL);
}

/* --- What is shown -------------------------------------------------------- */

static void put(int y, const char *text, int look)
{
    attrset(look);
    mvaddnstr(y, 0, text, COLS);
    clrtoeol();
    attrset(A_NORMAL);
}

static size_t rows_shown(void)
{
    return LINES > HEADS ? (size_t)(LINES - HEADS) : 0;
}

/* The chosen one is among those that are shown. */
static void scroll_to_chosen(screen *s)
{
    size_t n = s->t->now.n, shown = rows_shown();
    if (s->chosen >= n)
        s->chosen = n > 0 ? n - 1 : 0;
    if (s->first > s->chosen)
        s->first = s->chosen;
    if (shown > 0 && s->chosen >= s->first + shown)
        s->first = s->chosen - shown + 1;
}

static void draw(screen *s)
{
    char line[TOP_WIDTH_MAX + 1];
    const top *t = s->t;
    size_t width = COLS > 0 ? (size_t)COLS : 80;
    scroll_to_chosen(s);
    put(0, top_summary(t, line, width), A_NORMAL);
    put(1, top_line(NULL, line, width),
        s->holds ? A_REVERSE | A_BLINK : A_REVERSE);
    for (size_t i = 0; i < rows_shown(); i++) {
        size_t k = s->first + i;
        if (k < t->now.n)
            put((int)i + HEADS, top_line(&t->now.at[k], line, width),
                k == s->chosen ? A_BOLD | A_UNDERLINE : A_NORMAL);
        else
            put((int)i + HEADS, "", A_NORMAL);
    }
    refresh();
}

/* --- What is typed -------------------------------------------------------- */

/* In the terminal as it was before; then the screen again, after a key. */
static void run_verb(screen *s, const cli_verb *v, char *word)
{
    char dashes[] = "--", *argv[] = {(char *)v->name, dashes, word, NULL};
    char shown[80];
    def_prog_mode();
    endwin();
    printf("$ rlock %s %s%s\n", v->name, word && *word == '-' ? "-- " : "",
           word ? cli_printable(shown, sizeof shown, word) : "");
    fflush(stdout);
    handle_signals(SIG_DFL);
    v->run(s->t->o, word ? 3 : 1, argv);
    printf("-- any key --");
    fflush(stdout);
    handle_signals(note_signal);
    reset_prog_mode();
    timeout(-1);
    getch();
    clear();
    s->next_us = 0;
}

/* A name that is no text of C cannot be given to a verb. */
static char *chosen_name(screen *s)
{
    const top *t = s->t;
    bool is = s->chosen < t->now.n &&
              strlen(t->now.at[s->chosen].name) == t->now.at[s->chosen].len;
    return is ? strdup(t->now.at[s->chosen].name) : NULL;
}

static void run_for_chosen(screen *s, const cli_verb *v)
{
    char *name = chosen_name(s);
    if (name)
        run_verb(s, v, name);
    free(name);
}

static void ask_for_glob(screen *s)
{
    put(0, "Which locks (? * [a-z] \\; nothing: all): ", A_BOLD);
    echo();
    timeout(-1);
    if (getnstr(s->glob, sizeof s->glob - 1) == OK)
        s->t->glob = s->glob[0] ? s->glob : NULL;
    noecho();
    s->next_us = 0;
}

static void move_by(screen *s, long rows)
{
    if (rows < 0 && s->chosen < (size_t)-rows)
        s->chosen = 0;
    else
        s->chosen += (size_t)rows;
}

static void take_key(screen *s, int key)
{
    long page = (long)rows_shown();
    switch (key) {
    case 'q':
        s->quits = true;
        break;
    case 's':
        s->t->order = (s->t->order + 1) % TOP_ORDERS;
        top_sort(s->t);
        break;
    case '/':
        ask_for_glob(s);
        break;
    case '\r':
    case '\n':
    case KEY_ENTER:
        run_for_chosen(s, &cli_show);
        break;
    case 'w':
        run_verb(s, &cli_waits, NULL);
        break;
    case 'b':
        run_for_chosen(s, &cli_break);
        break;
    case ' ':
        s->holds = !s->holds;
        break;
    case KEY_UP:
    case KEY_PPAGE:
        move_by(s, key == KEY_UP ? -1 : -page);
        break;
    case KEY_DOWN:
    case KEY_NPAGE:
        move_by(s, key == KEY_DOWN ? 1 : page);
        break;
    default:
        break;
    }
}

/* --- Until q -------------------------------------------------------------- */

static void look_if_due(screen *s)
{
    int64_t now_us = cli_now_us();
    if (s->holds || now_us < s->next_us)
        return;
    top_look(s->t);
    s->next_us = cli_now_us() + top_pause_us(s->t);
}

/* Nobody ever types there again: getch() does not wait any more. */
static bool is_gone(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

static void loop(screen *s)
{
    while (!s->quits && !told) {
        look_if_due(s);
        draw(s);
        int64_t left_us = s->next_us - cli_now_us();
        timeout(s->holds ? -1 : left_us > 0 ? (int)(left_us / 1000) + 1 : 0);
        int key = getch();
        s->quits = key == ERR && is_gone();
        take_key(s, key);
    }
}

/* A terminal that cannot move its cursor has none. */
static bool has_screen(void)
{
    const char *term = getenv("TERM");
    return term && *term && strcmp(term, "dumb") != 0 && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

bool top_screen(top *t, int *status)
{
    screen s = {.t = t};
    SCREEN *on = has_screen() ? newterm(NULL, stdout, stdin) : NULL;
    if (!on)
        return false;
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    curs_set(0);
    handle_signals(note_signal);
    loop(&s);
    endwin();
    delscreen(on);
    handle_signals(SIG_DFL);
    if (told)
        raise(told);
    t->glob = NULL;
    *status = 0;
    return true;
}

#endif
