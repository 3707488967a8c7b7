// SPDX-License-Identifier: MIT
//
// The papers' protocol as obase builds it: counts (ATC), announcements (TAI), phases, lock, commit.
// Two application threads, one collector that runs ROUNDS rounds. The names are those of
// src/mobility/atc_state.hpp and atc_thread.hpp: a scope is silent or counting for its whole life.
//
// A slot's word: address, count (saturating at STICKY instead of 127), access, lock, unvisited (the
// heap field's fourth value). CIW and temperature are policy and left out. Whatever the policy may
// want, every visited slot with count 0 is a candidate.
// Options:
//   REPLACE       thread 0 replaces the object by exchange and retires the old one
//   RECREATE      a lock of the data structure guards the slot; thread 0, inside, destroys it, frees
//                 object and memory at once, and builds another slot there later. TAGs go on naming
//                 the dead slot until their scopes end. Entry is by exchange here.
//   MOVE_OBJECT   two slots; thread 0 takes the object out of one and puts it into the other, while
//                 thread 1 uses it; entry by exchange
//   NESTED        scopes nest
//   STICKY=1      the first holder already saturates the count
//   XCHG_ENTRY    no membarrier, announcement by exchange
//   RECHECK       the other safe entry: phase and epoch read, announced, read again until unchanged
//                 (default: the code's, which announces first and then reads the phase once)

#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef STICKY
#define STICKY 2
#endif
#ifdef RECREATE
#define XCHG_ENTRY
#endif
#ifdef MOVE_OBJECT
#define XCHG_ENTRY
#define NS 2
#else
#define NS 1
#endif
#ifdef REPLACE
#define NA 3
#else
#define NA 2
#endif
#define NONE 255

#define ADDR(w) ((w) & 3)
#define COUNT(w) (((w) >> 2) & 3)
#define COUNTS (3 << 2)
#define MAKE_STICKY(w) (((w) & ~COUNTS) | (STICKY << 2))
#define ACCESS 16
#define LOCK 32
#define UNVISITED 64
#define BIT(a) (1 << (a))

#define INACTIVE 0
#define PREPARE 1
#define ACTIVE 2
#define DRAIN 3
#define SILENT 1
#define COUNTING 2

byte word[NS];
bit live[NA + 1];
byte holders[NA + 1]; // ghost: bit t = thread t may use this raw address
byte copied;          // ghost: the source of the copy in flight, 0 if none
bit stale;            // ghost: it changed since
byte phase;
byte epoch = 1;
byte tai[2];      // announcements as the collector sees them
byte buffered[2]; // an announcement still in the store buffer; NONE if none
#ifdef RECREATE
bit slot = 1; // ghost: the place is a slot
bit soda = 1;
bit locked;
bit exit_hazard[2];
byte exits[2];   // numbers the exit hazards
byte foreign;    // what the place holds while it is no slot
#endif
#ifdef REPLACE
byte retired;
#endif

#ifdef MUTANT_TAI_COLLISION
#define PLACE(t) 0
#else
#define PLACE(t) t
#endif

inline drain(t) {
    if
    :: buffered[t] != NONE -> tai[PLACE(t)] = buffered[t]; buffered[t] = NONE
    :: else
    fi
}

inline announce(t, value) {
#ifdef XCHG_ENTRY
    tai[PLACE(t)] = value
#else
    buffered[t] = value
#endif
}

inline allocate(a) {
    a = 1;
    do
    :: a <= NA && live[a] -> a++
    :: else -> break
    od;
    if
    :: a <= NA ->
        live[a] = 1;
        if
        :: a == copied -> stale = 1
        :: else
        fi
    :: else -> a = 0
    fi
}

inline drop() {
    if
    :: h != 0 -> holders[h] = holders[h] & ~BIT(t); h = 0
    :: else
    fi
}

inline hold(a) {
    h = a;
    if
    :: h != 0 -> holders[h] = holders[h] | BIT(t); assert(live[h])
    :: else
    fi
}

// any word -> one more holder, access set, lock cleared
inline count_in(s) {
#ifdef MUTANT_ATC_WRAPS
    word[s] = (word[s] & ~COUNTS) | (((COUNT(word[s]) + 1) % STICKY) << 2);
#else
    if
    :: COUNT(word[s]) < STICKY -> word[s] = word[s] + (1 << 2)
    :: else
    fi;
#endif
#ifdef MUTANT_LOCK_NOT_CLEARED
    word[s] = word[s] | ACCESS
#else
    word[s] = (word[s] | ACCESS) & ~LOCK
#endif
}

inline count_out(s) {
    if
#ifdef MUTANT_STICKY_COUNTED_DOWN
    :: COUNT(word[s]) > 0 -> word[s] = word[s] - (1 << 2)
#else
    :: COUNT(word[s]) > 0 && COUNT(word[s]) < STICKY -> word[s] = word[s] - (1 << 2)
#endif
    :: else
    fi
}

// I2: is a slot that comes to life, or receives an object, to be sticky?
#ifdef MUTANT_BORN_ZERO
#define QUIET true
#else
#ifdef MUTANT_QUIET_BY_SCOPE
#define QUIET (mode == SILENT)
#else
#define QUIET (phase == INACTIVE)
#endif
#endif

// w != 0: in a dereference of slot s, with w seen (never 0 then: SEEN is set). Otherwise w == 0.
#define SEEN 128

proctype app(byte t) {
    byte e, w, h, s, mode, tag;
    bit announced;
#ifdef NESTED
    bit inner;
#endif
#ifdef RECREATE
    bit mine; // this thread has the lock
    byte seen;
#endif
#ifdef MOVE_OBJECT
    byte carried; // an object between two slots
    byte from;
#endif

end_outside:
    do
#ifdef MUTANT_PHASE_BEFORE_TAI
    // The published order: the phase first, the announcement after it.
    :: atomic { mode == 0 ->
            mode = ((phase == PREPARE || phase == ACTIVE) -> COUNTING : SILENT)
        };
        e = epoch;
        atomic { announce(t, e); e = 0 }
#else
#ifdef RECHECK
    :: atomic { mode == 0 ->
            e = epoch;
            s = phase
        };
again:
        atomic { announce(t, e) };
        if
        :: atomic { phase == s && epoch == e ->
                mode = ((s == PREPARE || s == ACTIVE) -> COUNTING : SILENT);
                s = 0;
                e = 0
            }
        :: atomic { !(phase == s && epoch == e) -> e = epoch; s = phase; goto again }
        fi
#else
    :: atomic { mode == 0 -> e = epoch };
        atomic { announce(t, e); e = 0 };
        mode = ((phase == PREPARE || phase == ACTIVE) -> COUNTING : SILENT)
#endif
#endif

#ifdef NESTED
    :: atomic { mode != 0 && w == 0 && !inner -> inner = 1 };
#ifdef MUTANT_INNER_SCOPE_RECORDS
        e = epoch;
        atomic { announce(t, e); e = 0 };
        mode = ((phase == PREPARE || phase == ACTIVE) -> COUNTING : SILENT)
#endif
    :: atomic { mode != 0 && w == 0 && inner -> inner = 0 }
#endif

    :: atomic { h != 0 && h == copied && !stale -> stale = 1 } // a write

    // Dereference: load ...
#ifdef RECREATE
    :: atomic { mode != 0 && !mine && !locked -> locked = 1; mine = 1 }
    :: atomic { mine && w == 0 -> drop(); locked = 0; mine = 0 }
    :: atomic { mine && slot && w == 0 ->
#else
#ifdef MOVE_OBJECT
    :: atomic { t == 1 && mode != 0 && w == 0 ->
            if
            :: ADDR(word[0]) != 0 -> s = 0
            :: ADDR(word[1]) != 0 -> s = 1
            fi;
#else
    :: atomic { mode != 0 && w == 0 ->
#endif
#endif
            drop();
            w = word[s] | SEEN
        }
    // ... silent, or counted in already: nothing to do if the access bit is set
    :: atomic { w != 0 && (mode == SILENT || (tag & BIT(s))) ->
            if
            :: (w & ACCESS) || ADDR(w) == 0 -> hold(ADDR(w)); w = 0
            :: else ->
                drain(t);
                if
                :: word[s] == (w & ~SEEN) ->
                    word[s] = word[s] | ACCESS;
                    hold(ADDR(w));
                    w = 0
                :: else ->
#ifdef MUTANT_ADDRESS_FROM_FIRST_LOAD
                    hold(ADDR(w));
                    w = 0
#else
                    w = word[s] | SEEN
#endif
                fi
            fi
        }
    // ... counting, first touch
    :: atomic { w != 0 && mode == COUNTING && !(tag & BIT(s)) ->
#ifdef MUTANT_SKIP_WHEN_ACCESS_SET
            if
            :: w & ACCESS -> hold(ADDR(w)); w = 0
            :: else ->
#endif
            drain(t);
            if
            :: word[s] == (w & ~SEEN) ->
                count_in(s);
                tag = tag | BIT(s);
                hold(ADDR(w));
                w = 0
            :: else ->
#ifdef MUTANT_ADDRESS_FROM_FIRST_LOAD
                count_in(s);
                tag = tag | BIT(s);
                hold(ADDR(w));
                w = 0
#else
                w = word[s] | SEEN
#endif
            fi
#ifdef MUTANT_SKIP_WHEN_ACCESS_SET
            fi
#endif
        }

#ifdef REPLACE
    // Replace by exchange: ATC stays; word, phase, CAS are three steps, as in swap_object().
    :: atomic { t == 0 && mode != 0 && w == 0 ->
            drop();
            allocate(h);
            if
            :: h != 0 -> w = word[0]
            :: else -> goto end_outside
            fi
        };
        do
        :: atomic {
                s = h | UNVISITED | (w & COUNTS);
                if
                :: QUIET
                :: else -> s = MAKE_STICKY(s)
                fi
            };
            atomic {
                drain(t);
                if
                :: word[0] == w ->
                    word[0] = s;
                    assert(live[ADDR(w)] && !(retired & BIT(ADDR(w))));
                    retired = retired | BIT(ADDR(w));
                    h = 0;
                    w = 0;
                    s = 0;
                    break
                :: else -> w = word[0]; s = 0
                fi
            }
        od
#endif
#ifdef MOVE_OBJECT
    // Take the object of one slot and put it into the other; no other process changes addresses.
    :: atomic { t == 0 && mode != 0 && w == 0 && carried == 0 ->
            drop();
            if
            :: ADDR(word[0]) != 0 && ADDR(word[1]) == 0 -> from = 0
            :: ADDR(word[1]) != 0 && ADDR(word[0]) == 0 -> from = 1
            fi;
            carried = NONE
        };
        do // exchange with null; REPLACE has the load of the word as a step of its own
        :: atomic {
                w = word[from];
                s = UNVISITED | (w & COUNTS);
                if
                :: QUIET
                :: else -> s = MAKE_STICKY(s)
                fi
            };
            atomic {
                if
                :: word[from] == w ->
                    word[from] = s;
                    carried = ADDR(w);
                    w = 0;
                    s = 0;
                    break
                :: else -> w = 0; s = 0
                fi
            }
        od;
        do // exchange with the object
        :: atomic {
                w = word[1 - from];
                s = carried | UNVISITED | (w & COUNTS);
                if
                :: QUIET
                :: else -> s = MAKE_STICKY(s)
                fi
            };
            atomic {
                if
                :: word[1 - from] == w ->
                    word[1 - from] = s;
                    carried = 0;
                    from = 0;
                    w = 0;
                    s = 0;
                    break
                :: else -> w = 0; s = 0
                fi
            }
        od
#endif
#ifdef RECREATE
    // Destroy: the bit, the exits of the other thread, the word, the object, the memory.
    :: atomic { t == 0 && mine && slot && w == 0 -> drop(); drain(t); soda = 0 };
#ifndef MUTANT_DESTROY_NO_WAIT
        if
        :: phase == INACTIVE
        :: phase != INACTIVE ->
            atomic {
                if
                :: exit_hazard[1 - t] -> seen = exits[1 - t]
                :: else
                fi
            };
            atomic { !exit_hazard[1 - t] || exits[1 - t] != seen -> seen = 0 };
            tag = 0
        fi;
#else
        tag = 0;
#endif
        atomic {
            w = ADDR(word[0]);
            assert(live[w] && !holders[w]);
            live[w] = 0;
            slot = 0;
            w = 0;
            if // the memory becomes an integer that may look like any slot
            :: word[0] = 1
            :: word[0] = 1 | (1 << 2)
            fi;
            foreign = word[0]
        }
    // Construct: born, sticky outside of INACTIVE; then the bit.
    :: atomic { t == 0 && mine && !slot && w == 0 ->
            assert(word[0] == foreign);
            allocate(w);
            if
            :: w != 0
            :: else -> goto end_outside
            fi
        };
        atomic {
            if
            :: QUIET -> w = w | UNVISITED
            :: else -> w = MAKE_STICKY(w | UNVISITED)
            fi
        };
        atomic { word[0] = w; slot = 1; foreign = 0; w = 0 };
        atomic { drain(t); soda = 1 }
#endif

    // Leave: count out, then end the announcement.
#ifdef RECREATE
    :: atomic { mode != 0 && w == 0 && !mine ->
#else
    :: atomic { mode != 0 && w == 0 ->
#endif
            drop();
            s = 0;
#ifdef NESTED
            inner = 0;
#endif
        };
#ifdef RECREATE
        if
        :: tag != 0 ->
#ifndef MUTANT_NO_EXIT_HAZARD
            atomic { drain(t); exits[t] = 1 - exits[t]; exit_hazard[t] = 1 };
#endif
            if
#ifdef MUTANT_NO_EXIT_SODA_CHECK
            :: true ->
#else
            :: soda ->
#endif
                atomic { assert(slot); count_out(0) }
#ifndef MUTANT_NO_EXIT_SODA_CHECK
            :: else
#endif
            fi;
            exit_hazard[t] = 0
        :: else
        fi;
        tag = 0;
#else
        do
        :: atomic { tag & 1 -> drain(t); count_out(0); tag = tag & ~1 }
#if NS > 1
        :: atomic { tag & 2 -> drain(t); count_out(1); tag = tag & ~2 }
#endif
        :: tag == 0 -> break
        od;
#endif
        atomic { buffered[t] = NONE; tai[PLACE(t)] = 0; mode = 0 }
    od
}

#ifndef XCHG_ENTRY
proctype store_buffers() {
end_drain:
    do
    :: atomic { buffered[0] != NONE -> drain(0) }
    :: atomic { buffered[1] != NONE -> drain(1) }
    od
}
#endif

inline membarrier() {
#ifndef XCHG_ENTRY
#ifndef MUTANT_NO_MEMBARRIER
    drain(0);
    drain(1);
#endif
#endif
    skip
}

#define PASSED(t, E) (tai[t] == 0 || tai[t] >= (E))

proctype collector() {
    byte round, s, w, E, dst, lock_word;
    byte candidate[NS]; // the word as the visit left it, 0 if none
    bit ready;
#ifdef REPLACE
    byte taken;
#endif

    do
    :: round < ROUNDS ->
        round++;
        // Poll whether the counting scopes of the last round have ended; DRAIN stays if they have not.
#ifdef MUTANT_NO_GRACE
        if
        :: phase == DRAIN -> phase = INACTIVE
        :: else
        fi;
#else
        if
        :: phase == DRAIN ->
            if
            :: PASSED(0, E) ->
                if
                :: PASSED(1, E) -> phase = INACTIVE
                :: true
                fi
            :: true
            fi
        :: else
        fi;
#endif
        E = 0;

        // Visit: take the access bit; in INACTIVE set stale counts to 0.
        do
        :: s < NS ->
#ifdef RECREATE
            // One visit is one step here: arming_slots.pml has the hazards.
            atomic {
                w = (soda -> word[s] : 0);
                assert(!soda || slot)
            };
#else
            w = word[s];
#endif
            atomic {
                candidate[s] = 0;
                if
                :: ADDR(w) == 0
#ifdef MUTANT_SWEEP_ALWAYS
                :: ADDR(w) != 0 ->
#else
                :: ADDR(w) != 0 && phase != INACTIVE && COUNT(w) != 0
                :: ADDR(w) != 0 && (phase == INACTIVE || COUNT(w) == 0) ->
#endif
                    if
#ifdef RECREATE
                    :: soda && word[s] == w ->
#else
                    :: word[s] == w ->
#endif
                        word[s] = ADDR(w) | (w & LOCK);
                        candidate[s] = word[s]
                    :: else
                    fi
                fi;
                w = 0;
                s++
            }
        :: atomic { s == NS -> s = 0; break }
        od;
#ifdef REPLACE
        atomic { taken = taken | retired; retired = 0 };
#endif

        // A further batch in ACTIVE needs no wait.
        if
        :: phase == ACTIVE -> ready = 1; goto settled
        :: else
        fi;

        // Settle: the phase, the epoch, the barrier, the announcements.
#ifdef MUTANT_EPOCH_BEFORE_PHASE
        atomic { epoch++; E = epoch };
        atomic { membarrier() };
        phase = PREPARE;
#else
        phase = PREPARE;
        atomic { epoch++; E = epoch };
        atomic { membarrier() };
#endif
#ifdef MUTANT_NO_PREPARE_WAIT
        ready = 1;
#else
        if
        :: PASSED(0, E) ->
            if
            :: PASSED(1, E) -> ready = 1
            :: true
            fi
        :: true
        fi;
#endif
        E = 0;
        if
        :: ready ->
            phase = ACTIVE
#ifdef REPLACE
            ;
            atomic {
                w = 1;
                do
                :: w <= NA && (taken & BIT(w)) -> assert(!holders[w]); live[w] = 0; w++
                :: w <= NA && !(taken & BIT(w)) -> w++
                :: else -> break
                od;
                w = 0;
                taken = 0
            }
#endif
        :: else
        fi;
settled:
        if
        :: ready ->
            do
            :: atomic { s < NS && candidate[s] != 0 ->
                    // Lock: the first CAS. Used again since the visit is no veto, a count is.
                    w = word[s];
                    if
#ifdef RECREATE
                    :: !soda -> w = 0
#endif
#ifdef MUTANT_LOCK_IGNORES_COUNT
                    :: ADDR(w) == ADDR(candidate[s]) && !(w & UNVISITED) ->
#else
                    :: COUNT(w) == 0 && (w & ~ACCESS) == candidate[s] ->
#endif
                        lock_word = w | LOCK
                    :: else -> w = 0
                    fi
                };
                if
                :: w != 0 ->
                    atomic {
                        if
#ifdef RECREATE
                        :: soda && word[s] == w -> word[s] = lock_word
#else
                        :: word[s] == w -> word[s] = lock_word
#endif
                        :: else -> lock_word = 0
                        fi;
                        w = 0
                    };
                    atomic {
                        if
                        :: lock_word != 0 ->
                            allocate(dst);
                            copied = ADDR(lock_word);
                            stale = 0
                        :: else
                        fi
                    };
#ifdef MUTANT_FREE_BEFORE_COMMIT
                    atomic {
                        if
                        :: dst != 0 -> assert(!holders[copied]); live[copied] = 0
                        :: else
                        fi
                    };
#endif
                    atomic { // Commit: the second CAS, against the locked word.
                        if
                        :: dst == 0
#ifdef MUTANT_STORE_COMMIT
                        :: dst != 0 ->
#else
#ifdef RECREATE
                        :: dst != 0 && !(soda && word[s] == lock_word) -> w = dst
                        :: dst != 0 && soda && word[s] == lock_word ->
#else
#ifdef MUTANT_COMPARE_UNLOCKED_WORD
                        :: dst != 0 && word[s] != (lock_word & ~LOCK) -> w = dst
                        :: dst != 0 && word[s] == (lock_word & ~LOCK) ->
#else
                        :: dst != 0 && word[s] != lock_word -> w = dst
                        :: dst != 0 && word[s] == lock_word ->
#endif
#endif
#endif
#ifdef REACH_COMMIT
                            // Is there a commit that no thread disturbed? Stop at the first commit.
                            if
                            :: word[s] & LOCK -> assert(false)
                            :: else -> goto end_stop
                            fi;
#endif
                            w = ADDR(lock_word);
                            assert(!holders[w] && !stale);
                            word[s] = dst
                        fi;
                        copied = 0;
                        stale = 0;
                        dst = 0
                    };
                    atomic { // a lock that is still ours is taken back
                        if
#ifdef RECREATE
                        :: soda && word[s] == lock_word && lock_word != 0 ->
#else
                        :: word[s] == lock_word && lock_word != 0 ->
#endif
                            word[s] = lock_word & ~LOCK
                        :: else
                        fi;
                        lock_word = 0;
                        if
                        :: w != 0 ->
                            assert(!holders[w]);
#ifndef MUTANT_FREE_BEFORE_COMMIT
                            assert(live[w]);
#endif
                            live[w] = 0
                        :: else
                        fi;
                        w = 0
                    }
                :: else
                fi;
                atomic { candidate[s] = 0; s++ }
            :: atomic { s < NS && candidate[s] == 0 -> s++ }
            :: atomic { s == NS -> s = 0; break }
            od
        :: else -> atomic { candidate[0] = 0; candidate[NS - 1] = 0 }
        fi;

        // Finish, or go on with another batch.
        if
        :: phase = DRAIN;
            atomic { epoch++; E = epoch };
            atomic { membarrier() }
        :: phase == ACTIVE
        fi;
        ready = 0
    :: else -> break
    od;
#ifdef REACH_COMMIT
end_stop:
    false
#else
    skip
#endif
}

init {
    atomic {
        buffered[0] = NONE;
        buffered[1] = NONE;
        word[0] = 1 | UNVISITED;
#if NS > 1
        word[1] = UNVISITED;
#endif
        live[1] = 1;
        run app(0);
        run app(1);
#ifndef XCHG_ENTRY
        run store_buffers();
#endif
        run collector()
    }
}
