/*
 * The server of line.pml, and what only the judge knows of those who stand in line.
 */

byte holder = STRANGER, left; /* for so many ticks */
byte line[OWNERS], last;      /* tickets; 0: not in line */
bit tomb[OWNERS];
bit sign[2];
byte beat[2] = LEASE;         /* its age */
byte hearing[2];              /* the client's bell, as its latest try told it */
bit refuses;                  /* the next hold that is to be written */

/* The judge's: the ticket that is its right; and that it has lost its turn. */
byte place[OWNERS];
bit dropped[OWNERS];

#define IS_DEAF(c) (hearing[c] & 1)
#define OVERTAKES(w, v) (place[v] > 0 && place[v] < place[w] && \
    (line[v] > 0 || (does[v] == ASLEEP && stands[v] && !dropped[v])))

byte head, by, v; /* of a script, as they run one at a time */

inline give(w)
{
    /* In the order of first tries. */
    for (v : 0 .. OWNERS - 1) {
        assert(!OVERTAKES(w, v))
    }
    v = 0;
    place[w] = 0;
    holder = w;
    left = LEASE
}

inline tell(w)
{
    if
    :: !IS_DEAF(CLIENT(w)) && hears[CLIENT(w)] ->
#ifdef DEADLINE_FROM_MESSAGE
        grant[w] = LEASE + 1
#else
        grant[w] = LEASE - beat[CLIENT(w)] + 1
#endif
    :: else
    fi
}

/* Out of the line, the hold, the message. Or it is taken back, and its client's sign
 * of life with it. */
inline grant_head()
{
    line[head] = 0;
#ifdef MESSAGE_WITHOUT_HOLD
    tell(head);
#endif
    if
#ifdef UNHEARD_KEPT
    :: !refuses ->
#else
    :: !refuses && (IS_DEAF(CLIENT(head)) || hears[CLIENT(head)]) ->
#endif
        give(head);
        tell(head)
    :: else ->
        looks[CLIENT(head)] = looks[CLIENT(head)] || refuses;
        refuses = 0;
        sign[CLIENT(head)] = 0;
        dropped[head] = 1
    fi
}

inline find_head()
{
    head = NOBODY;
    for (v : 0 .. OWNERS - 1) {
        if
        :: line[v] > 0 && (head == NOBODY || line[v] < line[head]) -> head = v
        :: else
        fi
    }
    v = 0
}

inline admit(me)
{
    find_head();
    do
    :: head == NOBODY || holder != NOBODY -> break
    :: else ->
        if
        :: !sign[CLIENT(head)] -> line[head] = 0; dropped[head] = 1
        :: sign[CLIENT(head)] && head == me -> line[me] = 0; give(me)
        :: else -> grant_head()
        fi;
        find_head()
    od;
    head = 0
}

/* What a try says of its client's hearing counts unless a later one has come. */
inline stand(i, w)
{
    if
    :: line[w] == 0 ->
        last = (call[i].ticket == 0 -> last + 1 : last);
        line[w] = (call[i].ticket == 0 -> last : call[i].ticket);
        place[w] = (i == w && ticket[w] > 0 -> ticket[w] : line[w]);
        dropped[w] = 0
    :: else
    fi;
    call[i].ticket = line[w];
    call[i].anew = !sign[CLIENT(w)];
    sign[CLIENT(w)] = 1;
    beat[CLIENT(w)] = (call[i].age < beat[CLIENT(w)] -> call[i].age : beat[CLIENT(w)]);
    hearing[CLIENT(w)] =
        (call[i].bell > hearing[CLIENT(w)] -> call[i].bell : hearing[CLIENT(w)])
}

inline acquire(i, w)
{
    if
    :: tomb[w] || holder == w
    :: else -> stand(i, w); admit(w)
    fi;
    call[i].step = (holder == w -> OWNED : BUSY);
    call[i].out = line[w] == 0;
    call[i].anew = call[i].anew && holder != w;
    left = (holder == w -> LEASE : left)
}

inline release(i, w)
{
#ifndef NO_TOMBSTONE
    tomb[w] = tomb[w] || call[i].bury;
#endif
    line[w] = 0;
    place[w] = 0;
    dropped[w] = 0;
    if
    :: holder == w -> holder = NOBODY; left = 0
    :: else
    fi;
    admit(NOBODY);
    call[i].step = FREED
}

inline execute(i)
{
    by = call[i].whose;
    if
    :: call[i].verb == ACQUIRE -> acquire(i, by)
    :: call[i].verb == RELEASE -> release(i, by)
    fi;
    by = 0
}
