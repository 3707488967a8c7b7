// SPDX-License-Identifier: MIT
//
// The arming protocol: two application threads, one collector, WINDOWS windows.
//
// Rules modelled: R1 (order of the wait), R2 (scope entry, nesting), R3 (only the collector arms),
// R5 (address from the successful CAS), R6 (lists die),
// R8 (exact-word CAS, free after it), R12 (exchange, retire).
// Options, combined by models/check.py so that each run stays small:
//   REPLACE     thread 0 replaces the object by exchange and retires the old one
//   PRIVATE     thread 0 owns the slot, frees its object at once and constructs a new one there, so
//               that addresses are reused under the collector's hands (ABA); thread 1 runs scopes
//   NESTED      scopes nest
//   SKIP_WAIT   a collector bolder than ours: without this window's wait it moves what was armed before the
//               previous one, if the scopes from before that are gone. It is here for R6
//   XCHG_ENTRY  no membarrier, scope entry by exchange (the fallback of R2)
//   DEBUG_REARM the debug mode that arms a touched guide again when the scope ends; it must write a
//               born word, since an armed one would be a word that the collector has in its list (R3)
//   NS=2        two slots shared by both threads
// Armed words carry no window stamp here: that is the stamp wrapped to the same value, the worst case.

#ifndef WINDOWS
#define WINDOWS 2
#endif
#ifndef NS
#define NS 1
#endif
#ifndef NA
#ifdef REPLACE
#define NA (NS + 2)
#else
#define NA (NS + 1)
#endif
#endif

#define NT 2
#define NONE 255

// A word: address in the low three bits (0 null), then the states of word/arming.hpp.
#define ARMED 8
#ifdef MUTANT_BORN_AS_ARMED
#define BORN ARMED
#else
#define BORN 16
#endif
#ifdef MUTANT_DEBUG_REARMS_ARMED
#define REARMED ARMED
#else
#define REARMED BORN
#endif
#define ADDR(w) ((w) & 7)
#define PLAIN(w) (((w) & 24) == 0)
#define BIT(a) (1 << (a))

byte word[NS];
bit live[NA + 1];     // address is allocated
byte holders[NA + 1]; // ghost: bit t = thread t may use this raw address
byte copied;          // ghost: the source of the copy in flight, 0 if none
bit stale;            // ghost: the source was written, or became another object, since the copy
#ifdef REPLACE
byte retired; // bit a = address a waits on the retire list
#endif
byte epoch = 1;
byte scope[NT];    // what the collector sees
byte buffered[NT]; // an entry store to scope[t] still in thread t's store buffer; NONE if none

inline drain(t) {
    if
    :: buffered[t] != NONE -> scope[t] = buffered[t]; buffered[t] = NONE
    :: else
    fi
}

inline store_scope(t, value) {
#ifdef XCHG_ENTRY
    scope[t] = value
#else
    buffered[t] = value
#endif
}

// Bytes are not modelled, only whether the copy in flight still equals its source. A write marks
// the copy stale from its first instant, so a copy of one step stands for any longer one.
inline written(a) {
    if
    :: a == copied -> stale = 1
    :: else
    fi
}

inline allocate(a) {
    a = 1;
    do
    :: a <= NA && live[a] -> a++
    :: else -> break
    od;
    if
    :: a <= NA -> live[a] = 1; written(a)
    :: else -> a = 0
    fi
}

// The thread lets go of the address that it holds.
inline drop() {
    if
    :: h != 0 -> holders[h] = holders[h] & ~BIT(t); h = 0
    :: else
    fi
}

inline hold(a) {
    h = a;
    holders[h] = holders[h] | BIT(t);
    assert(live[h])
}

inline choose_slot() {
#if NS > 1
    if
    :: s = 0
    :: s = 1
    fi
#else
    skip
#endif
}


// A load of the word: a plain one may be used at once (O1), any other waits in w for the slow path.
inline load(s) {
    w = word[s];
    if
    :: w != 0 && PLAIN(w) -> hold(w); w = 0
    :: else
    fi
}

// w != 0 means: in the slow path of a dereference, with w seen. Everything else needs w == 0.
proctype app(byte t) {
    byte e, w, h, s;
#ifdef NESTED
    bit inner;
#endif

    // Between scopes. R2: load the epoch, then store it; the two are separate steps.
end_outside:
    e = epoch;
    atomic { store_scope(t, e); e = 0 };

    do
#ifdef NESTED
    :: atomic { w == 0 && !inner && e == 0 ->
            inner = 1;
#ifdef MUTANT_INNER_SCOPE_RECORDS
            e = epoch
#endif
        }
    :: atomic { e != 0 -> store_scope(t, e); e = 0 }
    :: atomic { w == 0 && inner && e == 0 -> inner = 0 }
#endif
    :: atomic { h != 0 && h == copied && !stale -> written(h) }
#ifdef PRIVATE
    :: atomic { t == 0 && w == 0 && word[0] != 0 -> drop(); load(0) }
#else
    :: atomic { w == 0 -> drop(); choose_slot(); load(s) }
#endif
    :: atomic { w != 0 -> // R5: the slow path is a CAS, an RMW, so it drains the buffer
            drain(t);
            if
            :: word[s] == w -> word[s] = ADDR(w); hold(ADDR(w)); w = 0
            :: else ->
#ifdef MUTANT_ADDRESS_FROM_FIRST_LOAD
                hold(ADDR(w));
                w = 0
#else
                load(s) // what the failed CAS saw
#endif
            fi
        }
#ifdef REPLACE
    :: atomic { t == 0 && w == 0 -> // R12: a new object, one exchange, then retire the old one
            drop();
            choose_slot();
            allocate(h);
            if
            :: h != 0 ->
                drain(t);
#ifdef MUTANT_LOAD_THEN_STORE
                w = word[s];
            :: else
            fi
        };
        atomic {
            if
            :: h != 0 ->
#else
                w = word[s];
#endif
                word[s] = h; // plain, as R3 asks of everybody but the collector
                h = 0;
                assert(live[ADDR(w)] && !(retired & BIT(ADDR(w))));
#ifdef MUTANT_RETIRE_FREES
                assert(!holders[ADDR(w)]);
                live[ADDR(w)] = 0;
#else
                retired = retired | BIT(ADDR(w));
#endif
                w = 0
            :: else
            fi
        }
#endif
#ifdef PRIVATE
    :: atomic { t == 0 && w == 0 && word[0] != 0 -> // destroy: take the word, free the object
            drop();
            drain(t);
            h = ADDR(word[0]);
            word[0] = 0
        };
        atomic {
            assert(live[h] && !holders[h]);
            live[h] = 0;
            h = 0
        }
    :: atomic { t == 0 && w == 0 && word[0] == 0 -> // construct
            allocate(h);
            if
            :: h != 0 -> word[0] = h | BORN; h = 0
            :: else
            fi
        }
#endif
    :: atomic { w == 0 && e == 0 -> // leave; a buffered exit would only prolong the wait
#ifdef DEBUG_REARM
            if
            :: h != 0 && word[s] == h -> word[s] = h | REARMED
            :: else
            fi;
#endif
            drop();
            s = 0;
#ifdef NESTED
            inner = 0;
#endif
            buffered[t] = NONE;
            scope[t] = 0
        };
        goto end_outside
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

#define PASSED(t, E) (scope[t] == 0 || scope[t] >= (E))

proctype collector() {
    byte window, s, w, E, dst;
    byte candidate[NS]; // the exact armed word, 0 if none
    bit waited;
#ifdef SKIP_WAIT
    bit fresh[NS]; // armed by this scan, so it needs this window's wait
    bit old_gone;
    byte E_prev;
#endif
#ifdef REPLACE
    byte taken;
#endif

    do
    :: window < WINDOWS ->
        window++;
#ifdef MUTANT_EPOCH_BEFORE_ARM
        atomic { epoch++; E = epoch };
#endif
        // Scan: plain and born words are armed; an armed one is untouched since the last scan.
        do
        :: atomic { s < NS -> w = word[s] };
            atomic {
#ifndef MUTANT_LIST_SURVIVES_SCAN
                candidate[s] = 0; // R6
#endif
                if
                :: w == 0
                :: w != 0 && (w & ARMED) -> candidate[s] = w
                :: w != 0 && !(w & ARMED) ->
                    if
                    :: word[s] == w ->
                        word[s] = ADDR(w) | ARMED;
#ifdef SKIP_WAIT
#ifdef MUTANT_LIST_SURVIVES_SCAN
                        fresh[s] = candidate[s] == 0;
#else
                        fresh[s] = 1;
#endif
#endif
                        candidate[s] = ADDR(w) | ARMED
                    :: else
                    fi
                fi;
                w = 0;
                s++
            }
        :: atomic { s == NS -> s = 0; break }
        od;

#ifdef REPLACE
#ifndef MUTANT_RETIRE_TAKEN_AFTER_WAIT
        atomic { taken = taken | retired; retired = 0 };
#endif
#endif
#ifndef MUTANT_EPOCH_BEFORE_ARM
        atomic { epoch++; E = epoch };
#endif
        atomic { membarrier() };

#ifdef SKIP_WAIT
        // Are the scopes from before the previous scan's epoch gone?
#ifdef MUTANT_ARMED_IS_ENOUGH
        old_gone = 1;
#else
        if
        :: E_prev != 0 && PASSED(0, E_prev) ->
            if
            :: PASSED(1, E_prev) -> old_gone = 1
            :: else
            fi
        :: else
        fi;
#endif
        E_prev = E;
#endif
        // R1: the wait, which may be given up.
#ifdef MUTANT_NO_WAIT
        waited = 1;
#else
        if
        :: PASSED(0, E) ->
            if
            :: PASSED(1, E) -> waited = 1
            :: true
            fi
        :: true
        fi;
#endif
        E = 0;

#ifdef REPLACE
        // Reclaim what was retired before the epoch was advanced.
#ifdef MUTANT_RETIRE_TAKEN_AFTER_WAIT
        atomic { taken = taken | retired; retired = 0 };
#endif
        atomic {
            if
            :: waited ->
                w = 1;
                do
                :: w <= NA && (taken & BIT(w)) -> assert(!holders[w]); live[w] = 0; w++
                :: w <= NA && !(taken & BIT(w)) -> w++
                :: else -> break
                od;
                w = 0;
                taken = 0
            :: else
            fi
        };
#endif

        do
#ifdef SKIP_WAIT
        :: atomic { s < NS && candidate[s] && (waited || (!fresh[s] && old_gone)) ->
#else
        :: atomic { s < NS && candidate[s] && waited ->
#endif
                // R7: copy after the wait. The source may be free already (O5).
                allocate(dst);
                if
                :: dst != 0 -> copied = ADDR(candidate[s]); stale = 0
                :: else
                fi
            };
#ifdef MUTANT_FREE_BEFORE_CAS
            atomic {
                if
                :: dst != 0 -> assert(!holders[ADDR(candidate[s])]); live[ADDR(candidate[s])] = 0
                :: else
                fi
            };
#endif
            atomic { // R8: publish
                if
                :: dst == 0
#ifdef MUTANT_STORE_PUBLISH
                :: dst != 0 ->
#else
                :: dst != 0 && word[s] != candidate[s] -> w = dst // vetoed
                :: dst != 0 && word[s] == candidate[s] ->
#endif
#ifdef REACH_PUBLISH
                    assert(false);
#endif
                    w = ADDR(candidate[s]);
                    assert(!holders[w]); // O2
                    assert(!stale);      // no write is lost
                    if
                    :: word[s] = dst
                    :: word[s] = dst | ARMED
                    fi
                fi;
                copied = 0;
                stale = 0;
                dst = 0
            };
            atomic { // free the source, or after a veto the destination
                if
                :: w != 0 ->
                    assert(!holders[w]);
#ifndef MUTANT_FREE_BEFORE_CAS
                    assert(live[w]);
#endif
                    live[w] = 0
                :: else
                fi;
                w = 0;
                candidate[s] = 0;
                s++
            }
        :: atomic { s < NS && candidate[s] == 0 -> s++ }
#ifdef SKIP_WAIT
        :: atomic { s < NS && candidate[s] && !(waited || (!fresh[s] && old_gone)) ->
#else
        :: atomic { s < NS && candidate[s] && !waited ->
#endif
#ifndef MUTANT_LIST_SURVIVES_SCAN
                candidate[s] = 0; // R6: given up
#endif
                s++
            }
        :: atomic { s == NS -> break }
        od;
        s = 0;
#ifdef SKIP_WAIT
        fresh[0] = 0;
#if NS > 1
        fresh[1] = 0;
#endif
        old_gone = 0;
#endif
        waited = 0
    :: else -> break
    od
}

init {
    atomic {
        buffered[0] = NONE;
        buffered[1] = NONE;
        word[0] = 1 | BORN;
        live[1] = 1;
#if NS > 1
        word[1] = 2 | BORN;
        live[2] = 1;
#endif
        run app(0);
        run app(1);
#ifndef XCHG_ENTRY
        run store_buffers();
#endif
        run collector()
    }
}
