// SPDX-License-Identifier: MIT
//
// Destroying and reusing the memory of slots while the collector visits it (R10, R8, and R5's
// optimistic reader). Scopes and the wait are the subject of arming.pml; here a thread owns its slot
// alone, and a scope is one bit that the collector waits for.
//
// Two places of memory share one SODA word, so one hazard covers both. Thread t owns place t: it
// constructs a slot there, touches it, destroys it, and then uses the memory for an integer whose
// bits may be any slot word. What must never happen: the collector reads or changes a place that is
// not a slot; an object is freed twice or leaked; a destroyer waits for more than one visit.
// Options:
//   OPTIMISTIC  thread 1 owns no slot but reads place 0 without a lock, validating by a version as
//               optimistic concurrency control does, and touches it on the slow path

#ifndef WINDOWS
#define WINDOWS 2
#endif
#define NM 2 // places
#define NA 3 // addresses of objects

#define ARMED 8
#define BORN 16
#define ADDR(w) ((w) & 7)
#define PLAIN(w) (((w) & 24) == 0)

byte place[NM]; // the memory
bit slot[NM];   // ghost: the place is a slot now, from before construction ends to its end
bit soda[NM];   // the SODA bits
bit live[NA + 1];
bit scope[NM];
byte hazard;  // 0, or the sequence number of the visit in progress
byte visits;  // visits begun so far
#ifdef MUTANT_HAZARD_BY_STORE
byte hazard_buffered; // the hazard's store still in the collector's store buffer
#endif
#ifdef OPTIMISTIC
byte version; // odd while place 0 is not a slot
#endif

inline allocate(a) {
    a = 1;
    do
    :: a <= NA && live[a] -> a++
    :: else -> break
    od;
    if
    :: a <= NA -> live[a] = 1
    :: else -> a = 0
    fi
}

inline release(a) {
    assert(live[a]);
    live[a] = 0
}

// R10, the destroyer's half. seen is the visit to wait for, begun its ghost.
inline destroy() {
#ifdef MUTANT_HAZARD_BEFORE_CLEAR
    atomic { seen = hazard; begun = visits };
#endif
#ifdef MUTANT_WORD_BEFORE_WAIT
    w = place[t];
#endif
    soda[t] = 0; // a seq_cst RMW
#ifdef MUTANT_NO_HANDSHAKE
    seen = 0;
#else
#ifndef MUTANT_HAZARD_BEFORE_CLEAR
    atomic { seen = hazard; begun = visits };
#endif
#endif
    do
    :: atomic { seen == 0 || hazard != seen -> break }
#ifdef MUTANT_NO_SEQUENCE
    :: atomic { seen != 0 && hazard == seen && visits != begun -> assert(false) }
#endif
    od;
    atomic {
#ifndef MUTANT_WORD_BEFORE_WAIT
        w = place[t];
#endif
        release(ADDR(w));
        slot[t] = 0;
        w = 0;
        seen = 0;
        begun = 0
    }
}

proctype app(byte t) {
    byte w, a, seen, begun;

end_app:
    do
    :: atomic { !scope[t] -> scope[t] = 1 }
    :: atomic { scope[t] -> scope[t] = 0 }
    :: atomic { slot[t] && !PLAIN(place[t]) -> place[t] = ADDR(place[t]) } // a touch
#ifdef OPTIMISTIC
    :: atomic { slot[t] && version < 4 -> version++ }; // few lives, so that the version never wraps
#else
    :: slot[t] ->
#endif
        destroy();
        // The memory is another object's integer now; it happens to look like a slot.
        atomic {
#ifdef OPTIMISTIC
            place[t] = ARMED | BORN | 7;
#else
            if
            :: place[t] = ARMED | 1
            :: place[t] = ARMED | 2
            :: place[t] = ARMED | 3
            :: place[t] = 3
            fi;
#endif
            a = place[t]
        }
    :: !slot[t] ->
        // No process may have changed the integer.
        atomic {
            assert(a == 0 || place[t] == a);
            a = 0;
            allocate(w);
            if
            :: w == 0 -> a = place[t]; goto end_app
            :: else
            fi;
#ifdef MUTANT_BIT_BEFORE_WORD
            soda[t] = 1
        };
        atomic {
            place[t] = w | BORN;
            slot[t] = 1;
            w = 0
#else
            place[t] = w | BORN; // R10: the word first, then the bit
            slot[t] = 1;
            w = 0
        };
        atomic {
            soda[t] = 1;
#endif
#ifdef OPTIMISTIC
            version++
#endif
        }
    od
}

#ifdef OPTIMISTIC
// An optimistic reader: the version, the word, the version again, and only then the slow path. The
// memory may be recycled at any moment, but not unmapped.
proctype reader() {
    byte w, v;

end_reader:
    do
    :: v = version;
        if
        :: v & 1 -> goto end_reader
        :: else
        fi;
        w = place[0];
        if
#ifndef MUTANT_NO_VALIDATION
        :: version != v -> goto end_reader
#endif
        :: else
        fi;
        atomic {
            if
#ifdef MUTANT_TOUCH_BY_AND
            :: !PLAIN(w) -> place[0] = ADDR(place[0]) // R5 forbids it
#else
            :: !PLAIN(w) && place[0] == w -> place[0] = ADDR(w)
#endif
            :: else
            fi;
            w = 0
        }
    od
}
#endif

// R10, the collector's half: hazard by exchange, SODA again, the visit, release.
inline begin_visit(m) {
#ifndef MUTANT_NO_HAZARD
    atomic {
        visits++;
#ifdef MUTANT_NO_SEQUENCE
        hazard = 1;
#else
#ifdef MUTANT_HAZARD_BY_STORE
        hazard_buffered = visits;
#else
        hazard = visits;
#endif
#endif
    };
#endif
    skip
}

inline end_visit() {
    atomic {
#ifdef MUTANT_HAZARD_BY_STORE
        hazard_buffered = 0;
#endif
        hazard = 0
    }
}

#ifdef MUTANT_HAZARD_BY_STORE
proctype store_buffer() {
end_drain:
    do
    :: atomic { hazard_buffered != 0 -> hazard = hazard_buffered; hazard_buffered = 0 }
    od
}
#endif

proctype collector() {
    byte window, m, w, dst;
    byte candidate[NM];

    do
    :: window < WINDOWS ->
        window++;
        do
        :: m < NM ->
            candidate[m] = 0;
            if
            :: soda[m] ->
                begin_visit(m);
                if
#ifdef MUTANT_NO_SODA_RECHECK_IN_SCAN
                :: true ->
#else
                :: soda[m] ->
#endif
                    atomic { w = place[m]; assert(slot[m]) };
                    atomic {
                        if
                        :: w != 0 && place[m] == w ->
                            assert(slot[m]);
                            place[m] = ADDR(w) | ARMED;
                            candidate[m] = place[m]
                        :: else
                        fi;
                        w = 0
                    }
#ifndef MUTANT_NO_SODA_RECHECK_IN_SCAN
                :: else
#endif
                fi;
#ifndef MUTANT_HAZARD_ACROSS_WAIT
                end_visit()
#endif
            :: else
            fi;
            m++
        :: else -> break
        od;
        m = 0;

        // The wait: each scope is seen closed once.
        !scope[0];
        !scope[1];
#ifdef MUTANT_HAZARD_ACROSS_WAIT
        end_visit();
#endif

        do
        :: m < NM && candidate[m] != 0 ->
            atomic { allocate(dst) };
            if
            :: dst != 0 ->
                // The copy is a step of its own: anything may happen between wait and publish.
                begin_visit(m);
                if
#ifdef MUTANT_NO_SODA_RECHECK
                :: true ->
#else
                :: soda[m] ->
#endif
                    atomic { // R8: the exact armed word
                        w = dst;
                        if
                        :: place[m] == candidate[m] ->
                            assert(slot[m]);
#ifdef REACH_PUBLISH
                            assert(false);
#endif
                            w = ADDR(candidate[m]);
                            place[m] = dst
                        :: else
                        fi
                    }
#ifndef MUTANT_NO_SODA_RECHECK
                :: else -> w = dst
#endif
                fi;
                end_visit();
                atomic { release(w); w = 0; dst = 0 }
            :: else
            fi;
            m++
        :: m < NM && candidate[m] == 0 -> m++
        :: m == NM -> break
        od;
        m = 0
    :: else -> break
    od
}

init {
    atomic {
        place[0] = 1 | BORN;
        slot[0] = 1;
        soda[0] = 1;
        live[1] = 1;
        run app(0);
#ifdef OPTIMISTIC
        run reader();
#else
        run app(1);
#endif
#ifdef MUTANT_HAZARD_BY_STORE
        run store_buffer();
#endif
        run collector()
    }
}
