// SPDX-License-Identifier: MIT
//
// Pins (R9): an address used beyond its scope. Records {address, count} live per thread; the
// collector reads them one after the other, after the wait. Both threads pin; thread 0 replaces and
// retires; thread 1 may be given thread 0's pinned address, which adds to the count of thread 0's
// record and nowhere else (a copy into a record of its own could slip past a collector that has read
// the one record before the copy and reads the other after the original is gone).
//
// A pin's record is filled by a store that may stay in the store buffer until the scope's exit,
// which follows it in the same buffer. Scopes enter by exchange; the count is changed by RMW.

#ifndef WINDOWS
#define WINDOWS 2
#endif
#define NA 3
#define ARMED 8
#define BORN 16
#define ADDR(w) ((w) & 7)
#define PLAIN(w) (((w) & 24) == 0)
#define BIT(a) (1 << (a))

byte word;
bit live[NA + 1];
byte holders[NA + 1]; // ghost: bit t = thread t may use this raw address
byte copied;
bit stale;
byte retired;
byte epoch = 1;
byte scope[2];
byte pinned[2];   // the records: address ...
byte count[2];    // ... and count
byte pin_buffer[2]; // an address not yet stored to pinned[t], 0 if none
byte gift;        // the address that thread 0 offers to thread 1, 0 if none

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

inline drain(t) {
    if
    :: pin_buffer[t] != 0 -> pinned[t] = pin_buffer[t]; pin_buffer[t] = 0
    :: else
    fi
}

inline update_holders(a) {
    if
    :: a == 0
    :: a != 0 && (h == a || p == a || g == a) -> holders[a] = holders[a] | BIT(t)
    :: else -> holders[a] = holders[a] & ~BIT(t)
    fi
}

inline unpin(r) {
    count[r] = count[r] - 1;
    if
    :: count[r] == 0 -> pinned[r] = 0; pin_buffer[r] = 0
    :: else
    fi
}

// h: address held by the scope; p: by this thread's pin; g: by a pin that the other thread gave.
proctype app(byte t) {
    byte e, w, h, p, g;
    bit inside;

end_app:
    do
    :: atomic { !inside && e == 0 -> e = epoch }
    :: atomic { !inside && e != 0 -> drain(t); scope[t] = e; e = 0; inside = 1 }
    :: atomic { inside && w == 0 && h == 0 ->
            w = word;
            if
            :: PLAIN(w) -> h = w; w = 0; assert(live[h]); update_holders(h)
            :: else
            fi
        }
    :: atomic { w != 0 ->
            drain(t);
            if
            :: word == w -> word = ADDR(w); h = ADDR(w); assert(live[h]); update_holders(h)
            :: else
            fi;
            w = 0
        }
    :: atomic { (h != 0 && h == copied) || (p != 0 && p == copied) || (g != 0 && g == copied) ->
            stale = 1
        }
    :: atomic { inside && h != 0 && p == 0 && count[t] == 0 -> // pin, inside the scope
#ifdef MUTANT_PIN_AFTER_SCOPE
            p = h // the record is filled after the scope's exit, below
#else
            p = h;
            pin_buffer[t] = h;
            count[t] = 1
#endif
        }
    :: atomic { p != 0 && gift != p && count[t] != 0 -> // unpin
#ifdef MUTANT_ADDRESS_OUTLIVES_PIN
            if
            :: inside && h == 0 -> h = p // used on, as if the scope had loaded it
            :: else
            fi;
#endif
            w = p;
            p = 0;
            update_holders(w);
            w = 0;
            drain(t);
            unpin(t)
        }
#ifdef HANDOVER
    :: atomic { t == 0 && p != 0 && gift == 0 && count[0] == 1 -> gift = p }
    :: atomic { t == 1 && gift != 0 && g == 0 ->
            g = gift;
            update_holders(g);
#ifdef MUTANT_COPY_TO_OWN_RECORD
            if
            :: count[1] == 0 && p == 0 -> pinned[1] = g; count[1] = 1
            :: else -> g = 0; update_holders(gift)
            fi;
#else
            count[0]++;
#endif
            gift = 0
        }
    :: atomic { t == 1 && g != 0 ->
            w = g;
            g = 0;
            update_holders(w);
            w = 0;
#ifdef MUTANT_COPY_TO_OWN_RECORD
            unpin(1)
#else
            unpin(0)
#endif
        }
#endif
    :: atomic { t == 0 && inside && w == 0 -> // replace and retire
            w = h;
            h = 0;
            update_holders(w);
            allocate(w);
            if
            :: w != 0 ->
                drain(t);
                h = ADDR(word);
                word = w;
                retired = retired | BIT(h);
                h = 0;
                w = 0
            :: else
            fi
        }
    :: atomic { inside && w == 0 -> // leave
            w = h;
            h = 0;
            update_holders(w);
            w = 0;
            drain(t);
            scope[t] = 0;
            inside = 0
        }
#ifdef MUTANT_PIN_AFTER_SCOPE
    :: atomic { !inside && p != 0 && count[t] == 0 -> pinned[t] = p; count[t] = 1 }
#endif
    :: atomic { pin_buffer[t] != 0 -> drain(t) }
    od
}

#define PASSED(t, E) (scope[t] == 0 || scope[t] >= (E))

inline read_pins() {
    if
    :: pins = BIT(pinned[0]); atomic { pins = pins | BIT(pinned[1]) }
    :: pins = BIT(pinned[1]); atomic { pins = pins | BIT(pinned[0]) }
    fi
}

proctype collector() {
    byte window, w, E, dst, taken, pins, candidate;

    do
    :: window < WINDOWS ->
        window++;
        atomic { word = ADDR(word) | ARMED; candidate = word };
        atomic { taken = taken | retired; retired = 0 };
        atomic { epoch++; E = epoch };
#ifdef MUTANT_PINS_BEFORE_WAIT
        read_pins();
#endif
        PASSED(0, E);
        atomic { PASSED(1, E) -> E = 0 };
#ifndef MUTANT_PINS_BEFORE_WAIT
        read_pins();
#endif
        atomic {
            w = 1;
            do
            :: w <= NA ->
                if
#ifdef MUTANT_RECLAIM_IGNORES_PINS
                :: taken & BIT(w) ->
#else
                :: (taken & BIT(w)) && !(pins & BIT(w)) ->
#endif
                    assert(!holders[w]);
                    live[w] = 0;
                    taken = taken & ~BIT(w)
                :: else
                fi;
                w++
            :: else -> break
            od;
            w = 0
        };
        if
#ifdef MUTANT_NO_PIN_CHECK
        :: true ->
#else
        :: !(pins & BIT(ADDR(candidate))) ->
#endif
            atomic {
                allocate(dst);
                if
                :: dst != 0 -> copied = ADDR(candidate); stale = 0
                :: else
                fi
            };
            atomic {
                if
                :: dst != 0 && word == candidate ->
#ifdef REACH_PUBLISH
                    assert(false);
#endif
                    w = ADDR(candidate);
                    assert(!holders[w] && !stale);
                    word = dst
                :: else -> w = dst
                fi;
                dst = 0;
                copied = 0;
                stale = 0
            };
            atomic {
                if
                :: w != 0 -> assert(live[w] && !holders[w]); live[w] = 0
                :: else
                fi;
                w = 0
            }
#ifndef MUTANT_NO_PIN_CHECK
        :: else
#ifdef REACH_PINNED
            -> assert(false)
#endif
#endif
        fi;
        atomic { candidate = 0; pins = 0 }
    :: else -> break
    od
}

init {
    atomic {
        word = 1 | BORN;
        live[1] = 1;
        run app(0);
        run app(1);
        run collector()
    }
}
