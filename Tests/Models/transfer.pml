/* The transfer of an app: two hosts move its consents to the new team, each may die between any two steps, and users sign up and in.
 *
 * Nothing is said of time. Each `atomic` is one transaction of the store. A sign-up reads to whom the app belongs and takes a number for its
 * consent long before it commits; the store is SERIALIZABLE and has it repeated where the app was handed over since, and somebody has read
 * the range of numbers that it writes into. Checked by scripts/check-models:
 *   - no consent is lost or moved twice: in the end every one is the new team's, and each that was the old one's moved once;
 *   - nobody has two accounts with the new team;
 *   - whoever signs up in the middle of it ends with the new team;
 *   - a move that was interrupted goes on, and comes to its end (`ends`).
 *
 * Faults that it has to find, each with its define:
 *   NO_CONFLICT   a sign-up that read the old team commits whatever became of the app, as without SERIALIZABLE
 *   CURSOR_FIRST  how far it is, is written before the consents have followed, and no last look is taken
 *   NO_LOOK       a consent is moved without a look at whose it is
 *   TWO_STEPS     whether there is an account with the new team is asked in another transaction than the one that adds it
 */

#define OLD 0
#define NEW 1
#define NUMBERS 7       /* of consents; 0 is none */
#define USERS 4
#define FORMER 2        /* users 1 and 2 consented before */
#define DEATHS 2
#define ALL NUMBERS     /* numbers were read to the end */

byte team = OLD;        /* whose the app is */
byte cursor = 0;        /* consents up to this one were looked at */
byte passed = 0;        /* and up to this one read, by any transaction since the app was handed over */
bool finished = false;
byte next = FORMER + 1; /* number of the next consent */
byte owner[NUMBERS];    /* user of a consent that is committed; 0: none */
byte at[NUMBERS];       /* with which team it is */
byte moves[NUMBERS];
byte accounts[USERS + 1];   /* with the new team */
byte deaths = 0;
byte number;            /* of whoever is in an atomic */

ltl ends { <> finished }

inline move(grant) {
    moves[grant]++;
    assert(moves[grant] == 1);
    accounts[owner[grant]]++;
    assert(accounts[owner[grant]] == 1);
    at[grant] = NEW
}

/* The first consent that satisfies the condition, from one on; 0: none. */
#define FIRST(from, condition) \
    number = from; \
    do \
    :: number < NUMBERS && !(condition) -> number++ \
    :: number < NUMBERS && (condition) -> break \
    :: number >= NUMBERS -> number = 0; break \
    od

#ifdef NO_LOOK
#define WAITS(grant) true
#else
#define WAITS(grant) (at[grant] == OLD)
#endif

proctype Host() {
    byte found = 0;
    bool isEnd = false;
    do
    :: finished -> break
    :: !finished ->
        atomic {
            team = NEW;
            FIRST(cursor + 1, owner[number] > 0);
            found = number;
            number = 0;
            isEnd = (found == 0);
            if
            :: isEnd -> passed = ALL
            :: else ->
                if :: passed < found -> passed = found :: else fi;
                cursor = found;
#ifndef CURSOR_FIRST
                if :: WAITS(found) -> move(found) :: else fi
#endif
            fi
        };
        if
        :: deaths < DEATHS -> deaths++; found = 0; isEnd = false     /* it dies, and somebody begins again */
#ifdef CURSOR_FIRST
        :: !isEnd -> atomic { if :: WAITS(found) -> move(found) :: else fi }
        :: isEnd -> finished = true
#else
        :: !isEnd
        :: isEnd ->
            /* The last look, and what it says, are transactions of their own. */
            atomic { FIRST(1, owner[number] > 0 && at[number] == OLD); found = number; number = 0 };
            if
            :: found > 0 -> cursor = found - 1
            :: found == 0 -> finished = true
            fi
#endif
        fi;
        found = 0;
        isEnd = false
    od
}

proctype SignUp(byte user) {
    byte seen;
    byte mine = 0;
    do
    :: mine == 0 && next < NUMBERS -> atomic { seen = team; mine = next; next++ }
    :: mine == 0 && next >= NUMBERS -> break     /* it was repeated too often here; the user comes another day */
    :: mine > 0 ->
        atomic {
            if
#ifndef NO_CONFLICT
            :: seen != team && passed >= mine -> mine = 0
            :: !(seen != team && passed >= mine) ->
#else
            :: true ->
#endif
                owner[mine] = user;
                at[mine] = seen;
                if
                :: seen == NEW -> accounts[user]++; assert(accounts[user] == 1)
                :: else
                fi;
                break
            fi
        }
    od
}

/* A user who consented before: what has not followed yet does so now, and nobody is asked again. */
proctype SignIn(byte user) {
#ifdef TWO_STEPS
    bool waits;
    atomic { waits = (team == NEW && at[user] == OLD) };
    atomic { if :: waits -> move(user) :: else fi }
#else
    atomic { if :: team == NEW && at[user] == OLD -> move(user) :: else fi }
#endif
}

init {
    atomic {
        owner[1] = 1;
        owner[2] = 2;
        run Host();
        run Host();
        run SignIn(1);
        run SignIn(2);
        run SignUp(3);
        run SignUp(4)
    };
    _nr_pr == 1;
    atomic {
        assert(accounts[1] == 1 && accounts[2] == 1);
        number = 1;
        do
        :: number < NUMBERS ->
            assert(owner[number] == 0 || at[number] == NEW);
            number++
        :: else -> break
        od
    }
}
