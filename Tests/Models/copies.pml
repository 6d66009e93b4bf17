/* A message to several users: the first is relayed in place, the others get copies, and the sender repeats the message for all, for one or for
 * some, in any order, after an answer that it did not get, and while an earlier transaction is still at work.
 *
 * One host. Each `atomic` is one transaction of the store, or one message that Postfix takes. A kill ends all transactions, and what only the
 * process knew. Checked by scripts/check-models:
 *   - none is lost: a recipient that the sender takes for served has the message;
 *   - no copy is handed over twice, and no one gets a copy besides the message in place, but for what a kill or a lost answer to the message in
 *     place makes (RFC 1047).
 *
 * Faults that it has to find, each with its define:
 *   NO_ASK       a transaction for one recipient does not ask who has the message
 *   NO_TURN      two transactions have the same message at once
 *   LATE_TURN    who has the message is asked before it is this transaction's turn
 *   EARLY_MARK   a copy is noted before it is handed over
 */

#define USERS 3
#define ALL 7       /* a bit for each */
#define TRIES 3     /* transactions of the sender */
#define KILLS 1
#define REFUSALS 1

byte served = 0;    /* by what the sender knows */
byte noted = 0;     /* copies that were handed over, in the store */
byte turn = 0;      /* recipients whose message a transaction has now; in memory */
byte copied[USERS];
byte placed[USERS];
byte excused[USERS];    /* placements whose answer was lost */
byte tries = 0;
byte kills = 0;
byte refusals = 0;
byte life = 0;      /* of the process */
byte waits[2];      /* recipients for which the sender waits for the answer of each transaction: a later one ends that */

inline judge() {
    byte user = 0;
    do
    :: user < USERS ->
        assert(copied[user] <= 1 + kills);
        assert(copied[user] + placed[user] <= 1 + excused[user] + kills);
        assert(!(served & (1 << user)) || copied[user] + placed[user] > 0);
        user++
    :: else -> break
    od
}

#define LIVES (mine == life)
#define ME (_pid - 1)

proctype Transaction() {
    byte asked, todo, copies, first, next, mine, had;
    bool isRefused, isOver;
    do
    :: atomic {
        tries < TRIES && served != ALL ->
        tries++;
        mine = life;
        isRefused = false;
        isOver = false;
        had = 0;
        /* For all that are left, for one of them, or for some. */
        asked = ALL & ~served;
        if
        :: true
        :: asked & 1 -> asked = 1
        :: asked & 2 -> asked = 2
        :: asked & 4 -> asked = 4
        :: (asked & 3) == 3 -> asked = 3
        :: (asked & 6) == 6 -> asked = 6
        :: (asked & 5) == 5 -> asked = 5
        fi;
        waits[1 - ME] = waits[1 - ME] & ~asked;
        waits[ME] = asked;
#ifdef LATE_TURN
        todo = asked & ~noted
    };
    atomic {
#endif
        /* A sender gives up only once the whole message is sent: by then its turn was asked for. */
        if
        :: isOver || !LIVES -> isOver = true
#ifndef NO_TURN
        :: !isOver && LIVES && (turn & asked) -> isOver = true       /* 451 */
#endif
        :: else -> turn = turn | asked; had = asked
        fi
    };
#ifndef LATE_TURN
    atomic {
        if
        :: isOver || !LIVES -> isOver = true
#ifdef NO_ASK
        :: !isOver && LIVES && (asked & (asked - 1)) == 0 -> todo = asked
#endif
        :: else -> todo = asked & ~noted
        fi
    };
#endif
    if
    :: isOver
    :: !isOver && todo == 0 ->
        atomic { if :: LIVES -> served = served | waits[ME] :: else fi; judge() }
    :: !isOver && todo > 0 ->
        /* The order of the recipients is the sender's. */
        if
        :: todo & 1 -> first = 0
        :: todo & 2 -> first = 1
        :: todo & 4 -> first = 2
        fi;
        copies = todo & ~(1 << first);
        do
        :: copies == 0 || isOver -> break
        :: copies != 0 && !isOver ->
            if
            :: copies & 1 -> next = 0
            :: copies & 2 -> next = 1
            :: copies & 4 -> next = 2
            fi;
            copies = copies & ~(1 << next);
#ifdef EARLY_MARK
            atomic { if :: LIVES -> noted = noted | (1 << next) :: else -> isOver = true fi };
#endif
            if
            :: atomic { LIVES -> copied[next]++; judge() };
                atomic { if :: LIVES -> noted = noted | (1 << next) :: else -> isOver = true fi }
            :: atomic { LIVES && refusals < REFUSALS -> refusals++; isRefused = true }
            :: !LIVES -> isOver = true
            fi
        od;
        atomic {
            if
            :: isOver || isRefused || !LIVES
            :: else ->
                placed[first]++;
                if
                :: waits[ME] & (1 << first) -> served = served | waits[ME]
                :: excused[first]++      /* its answer is lost, or comes too late */
                fi;
                judge()
            fi
        }
    fi;
    atomic { if :: LIVES -> turn = turn & ~had :: else fi; waits[ME] = 0; had = 0; asked = 0; todo = 0; copies = 0; first = 0; next = 0; mine = 0 }
    :: tries == TRIES || served == ALL -> break
    od
}

/* The process is killed, and starts again. */
proctype Kill() {
    do
    :: atomic { kills < KILLS -> kills++; life++; turn = 0 }
    :: break
    od
}

init {
    atomic {
        run Transaction();
        run Transaction();
        run Kill()
    }
}
