// SPDX-License-Identifier: MIT
//
// Marked pointers on arming: an object may be in two slots within an operation, and the mover waits
// twice (docs/protocol.md, Marked pointers). One object, slots 0 and 1 which both threads load, and slot
// 2 which only thread 1 loads; one collector, WINDOWS windows.
//
// Thread 0 relinks: it stores the address that it found in one of its slots into the other, and takes it
// out of the first before its scope ends (rule 1). Thread 1 tries: it stores what it found into slot 2,
// and takes it out again, which it may, because no other thread can load it there (rule 2). Both also
// only read. A slot is registered before the first store into it, and the flag that asks for two waits is
// set before that.
//
// Bytes, touches and publishes are as in arming.pml, whose ghosts these are.

#ifndef WINDOWS
#define WINDOWS 2
#endif

#define NT 2
#define NS 3
#define NA 2
#define NONE 255

#define ARMED 8
#define BORN 16
#define ADDR(w) ((w) & 7)
#define PLAIN(w) (((w) & 24) == 0)
#define BIT(a) (1 << (a))

byte word[NS];
bit registered[NS];
bit two_slots; // scope_registry::expect_addresses_in_two_slots()
bit live[NA + 1];
byte holders[NA + 1]; // ghost: bit t = thread t may use this raw address
byte copied;          // ghost: the source of the copy in flight, 0 if none
bit stale;            // ghost: the source was written since the copy
byte epoch = 1;
byte scope[NT];
byte buffered[NT]; // the entry's store, while it is in the thread's store buffer

inline drain(t) {
    if
    :: buffered[t] != NONE -> scope[t] = buffered[t]; buffered[t] = NONE
    :: else
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
    holders[h] = holders[h] | BIT(t);
    assert(live[h])
}

// A slot that the thread can reach.
inline choose_slot(s) {
    if
    :: s = 0
    :: s = 1
#ifdef MUTANT_SHOWS_WHAT_IT_GIVES_UP
    :: s = 2
#else
    :: t == 1 -> s = 2
#endif
    fi
}

// w != 0: in the slow path of a load. gave: between the store into slot o and the taking out.
proctype app(byte t) {
    byte e, w, h, s, o;
    bit gave;

end_outside:
    e = epoch;
    atomic { buffered[t] = e; e = 0 };

    do
    :: atomic { h != 0 && h == copied && !stale -> stale = 1 } // a write through the address
    :: atomic { w == 0 && !gave -> // load: what is plain may be used at once (O1)
            drop();
            choose_slot(s);
            w = word[s];
            if
            :: w != 0 && PLAIN(w) -> hold(w); w = 0
            :: else
            fi
        }
    :: atomic { w != 0 -> // first touch, a CAS
            drain(t);
            if
            :: word[s] == w -> word[s] = ADDR(w); hold(ADDR(w)); w = 0
            :: else ->
                w = word[s];
                if
                :: w != 0 && PLAIN(w) -> hold(w); w = 0
                :: else
                fi
            fi
        }
    :: atomic { w == 0 && h != 0 && !gave && s != 2 -> // the other slot, made one before the store
            o = (t == 0 -> 1 - s : 2);
#ifndef MUTANT_FLAG_AFTER_THE_SLOT
            two_slots = 1;
#endif
            drain(t);
            registered[o] = 1
        };
        atomic { word[o] = h | BORN; gave = 1 };
#ifdef MUTANT_FLAG_AFTER_THE_SLOT
        two_slots = 1
#endif
    :: atomic { gave -> // rule 1: out of one of the two, by one exchange
            drain(t);
            if
            :: t == 0 -> assert(ADDR(word[s]) == h); word[s] = 0; s = o
            :: t == 1 -> word[o] = 0
            fi;
            gave = 0
        }
#ifdef MUTANT_KEEPS_BOTH
    :: atomic { gave && w == 0 -> gave = 0 }
#endif
    :: atomic { w == 0 && !gave -> // leave
            drop();
            s = 0;
            o = 0;
            buffered[t] = NONE;
            scope[t] = 0
        };
        goto end_outside
    od
}

proctype store_buffers() {
end_drain:
    do
    :: atomic { buffered[0] != NONE -> drain(0) }
    :: atomic { buffered[1] != NONE -> drain(1) }
    od
}

#define PASSED(t, E) (scope[t] == 0 || scope[t] >= (E))

proctype collector() {
    byte window, s, w, E, dst, waits;
    byte candidate[NS]; // the exact armed word, 0 if none

    do
    :: window < WINDOWS ->
        window++;
        do
        :: atomic { s < NS && registered[s] -> w = word[s] };
            atomic {
                if
                :: w == 0
                :: w != 0 && (w & ARMED) -> candidate[s] = w
                :: w != 0 && !(w & ARMED) ->
                    if
                    :: word[s] == w -> word[s] = ADDR(w) | ARMED; candidate[s] = ADDR(w) | ARMED
                    :: else
                    fi
                fi;
                w = 0;
                s++
            }
        :: atomic { s < NS && !registered[s] -> s++ }
        :: atomic { s == NS -> s = 0; break }
        od;

        // scope_registry::wait_for_holders(waits_for_holders())
#ifdef MUTANT_ONE_WAIT
        waits = 1;
#else
        waits = 1 + two_slots;
#endif
#ifdef MUTANT_SECOND_WAIT_WITHOUT_A_NEW_EPOCH
        atomic { epoch++; E = epoch };
#endif
        do
        :: waits != 0 ->
#ifndef MUTANT_SECOND_WAIT_WITHOUT_A_NEW_EPOCH
            atomic { epoch++; E = epoch };
#endif
            atomic { drain(0); drain(1) }; // membarrier
#ifndef MUTANT_NO_WAIT
            PASSED(0, E);
            PASSED(1, E);
#endif
            waits--
        :: else -> break
        od;
        E = 0;

        do
        :: atomic { s < NS && candidate[s] != 0 && !live[3 - ADDR(candidate[s])] ->
                dst = 3 - ADDR(candidate[s]);
                live[dst] = 1;
                copied = ADDR(candidate[s]);
                stale = 0
            };
            atomic { // publish, and free the source, or after a veto the destination
                if
                :: word[s] == candidate[s] ->
#ifdef REACH_PUBLISH
                    assert(false);
#endif
#ifdef REACH_SECOND_SLOT
                    if
                    :: s == 1 -> assert(false)
                    :: else
                    fi;
#endif
                    assert(!holders[copied]); // O2
                    assert(!stale);           // no write is lost
                    word[s] = dst | ARMED;
                    live[copied] = 0
                :: else -> live[dst] = 0
                fi;
                copied = 0;
                stale = 0;
                dst = 0;
                candidate[s] = 0;
                s++
            }
        :: atomic { s < NS && candidate[s] != 0 && live[3 - ADDR(candidate[s])] -> candidate[s] = 0; s++ }
        :: atomic { s < NS && candidate[s] == 0 -> s++ }
        :: atomic { s == NS -> s = 0; break }
        od
    :: else -> break
    od
}

init {
    atomic {
        buffered[0] = NONE;
        buffered[1] = NONE;
        word[0] = 1 | BORN;
        registered[0] = 1;
        live[1] = 1;
        run app(0);
        run app(1);
        run store_buffers();
        run collector()
    }
}
