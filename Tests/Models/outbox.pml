/* The outbox: two hosts deliver the events of one account, each under a lease that the other may take at any moment.
 *
 * Nothing is said of time: whoever waits may take the lease whenever it likes, and whoever has it may stand still between any two steps
 * (another process goes on meanwhile), or die. So what holds here holds for every clock. `LeaderLease` only makes it rare.
 *
 * Each `atomic` is one transaction of the store, or one request to the endpoint. Checked by scripts/check-models:
 *   - no event is lost: one that is marked was taken by the endpoint, and in the end all are marked (`delivered`);
 *   - none is out of order: the first arrival of an event follows that of the event before it;
 *   - at most one leader marks: no mark, and no pause of the endpoint, is written under a fence that is not the last.
 *
 * Faults that it has to find, each with its define:
 *   NO_FENCE     marks do not name the fence, as it was with a lock that lives as long as its connection
 *   NO_ORDER     any pending event is read, not the account's first
 *   EARLY_MARK   an event is marked before the endpoint took it
 */

#define EVENTS 3
#define TAKES 4     /* how often the lease changes hands */
#define FAILURES 2  /* attempts that fail, or whose answer is lost */

byte fence = 0;     /* of the lease, in the store */
byte written = 0;   /* changes committed, each with its event in the same transaction */
byte first = 1;     /* the first event that is not marked */
byte failures = 0;
bool received[EVENTS + 2];
bool marked[EVENTS + 2];

ltl delivered { <> (first == EVENTS + 1) }

/* The endpoint takes an event, perhaps again: it knows it by its jti then. */
inline take(event) {
    assert(event == 1 || received[event - 1]);
    received[event] = true
}

inline mark(event) {
    assert(mine == fence);
    assert(received[event]);
    marked[event] = true;
    do
    :: first <= EVENTS && marked[first] -> first++
    :: else -> break
    od
}

#ifdef NO_FENCE
#define HOLDS (mine > 0)
#else
#define HOLDS (mine == fence)
#endif

proctype Changes() {
    do
    :: written < EVENTS -> written++
    :: else -> break
    od
}

proctype Host() {
    byte mine = 0;      /* the fence that it holds, by what it knows; 0: none */
    byte event = 0;
    bool isTaken = false;
    do
    :: first == EVENTS + 1 -> break
    :: atomic { mine == 0 && fence < TAKES -> fence++; mine = fence }
    :: mine > 0 && fence < TAKES -> mine = 0     /* it dies, and starts again */
    :: mine > 0 ->
        /* What is due is read under the lease. */
        atomic {
            if
            :: !HOLDS -> mine = 0; event = 0
#ifdef NO_ORDER
            :: HOLDS && written > first -> event = written
#endif
            :: HOLDS && first <= written -> event = first
            :: HOLDS && first > written -> event = 0
            fi
        };
        if
        :: event == 0
        :: event > 0 ->
#ifdef EARLY_MARK
            atomic { if :: HOLDS && received[event] == false -> marked[event] = true; assert(received[event]) :: else fi };
#endif
            if
            :: atomic { take(event); isTaken = true }
            :: atomic { failures < FAILURES -> failures++; isTaken = false }
            :: atomic { failures < FAILURES -> failures++; take(event); isTaken = false }     /* its answer is lost */
            fi;
            atomic {
                if
                :: !HOLDS -> mine = 0
                :: HOLDS && isTaken -> mark(event)
                :: HOLDS && !isTaken -> assert(mine == fence)     /* the endpoint is paused */
                fi;
                event = 0;
                isTaken = false
            }
        fi
    od
}

init {
    atomic {
        run Changes();
        run Host();
        run Host()
    }
}
