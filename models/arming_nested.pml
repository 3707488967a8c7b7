// SPDX-License-Identifier: MIT
//
// Nested guides (R11, O4): a root guide owns a parent, the parent contains a place that is now a
// slot owning a child and now plain bytes, and the collector moves parent and child. Also R7 (copy
// after the wait) and the SODA bits of R8. Scopes enter by exchange, and one visit of the collector
// is one step: store buffers are the subject of arming.pml, hazards of arming_slots.pml.
//
// Thread 0 holds the parent in a scope and destroys or constructs the slot inside it, and also takes
// freed parent memory for objects of its own; thread 1 reads through both guides. A lock of the data
// structure keeps the two apart, never the collector.

#ifndef WINDOWS
#define WINDOWS 2
#endif
#define NP 2 // places for parents
#define NC 3 // places for children

#define ARMED 8
#define BORN 16
#define ADDR(w) ((w) & 7)
#define PLAIN(w) (((w) & 24) == 0)
#define BIT(a) (1 << (a))

byte root;
byte inner[NP + 1];       // the place inside each parent
bit slot[NP + 1];         // ghost: that place is a slot
bit soda[NP + 1];         // its SODA bit
bit parent_live[NP + 1];
bit child_live[NC + 1];
byte parent_holders[NP + 1]; // ghosts: bit t = thread t may use the raw address
byte child_holders[NC + 1];
byte parent_copied; // ghosts: the source of a copy in flight, and whether it changed since
bit parent_stale;
byte child_copied;
bit child_stale;
byte retired; // children
byte epoch = 1;
byte scope[2];
bit locked;
byte own; // a parent place that thread 0 uses for an object of its own

inline parent_written(p) {
    if
    :: p == parent_copied -> parent_stale = 1
    :: else
    fi
}

inline child_written(c) {
    if
    :: c == child_copied -> child_stale = 1
    :: else
    fi
}

inline allocate_parent(p) {
    p = 1;
    do
    :: p <= NP && parent_live[p] -> p++
    :: else -> break
    od;
    if
    :: p <= NP -> parent_live[p] = 1; parent_written(p)
    :: else -> p = 0
    fi
}

inline allocate_child(c) {
    c = 1;
    do
    :: c <= NC && child_live[c] -> c++
    :: else -> break
    od;
    if
    :: c <= NC -> child_live[c] = 1; child_written(c)
    :: else -> c = 0
    fi
}

inline drop_child() {
    if
    :: c != 0 -> child_holders[c] = child_holders[c] & ~BIT(t); c = 0
    :: else
    fi
}

inline drop_parent() {
    if
    :: p != 0 -> parent_holders[p] = parent_holders[p] & ~BIT(t); p = 0
    :: else
    fi
}

inline hold_parent(a) {
    p = a;
    parent_holders[p] = parent_holders[p] | BIT(t);
    assert(parent_live[p])
}

inline hold_child(a) {
    c = a;
    child_holders[c] = child_holders[c] | BIT(t);
    assert(child_live[c])
}

proctype app(byte t) {
    byte e, w, p, c;

end_outside:
    e = epoch;
    atomic { scope[t] = e; e = 0 };

    do
    :: atomic { p == 0 -> w = root };
        do
        :: atomic { PLAIN(w) -> hold_parent(w); w = 0; break }
        :: atomic { !PLAIN(w) ->
                if
                :: root == w -> root = ADDR(w); hold_parent(ADDR(w)); w = 0; break
                :: else -> w = root
                fi
            }
        od
    :: atomic { c != 0 && c == child_copied && !child_stale -> child_written(c) }
    :: atomic { p != 0 && c == 0 && !locked && slot[p] -> locked = 1; w = inner[p] };
        do
        :: atomic { PLAIN(w) -> hold_child(w); w = 0; locked = 0; break }
        :: atomic { !PLAIN(w) ->
                if
                :: inner[p] == w ->
                    inner[p] = ADDR(w);
                    parent_written(p);
                    hold_child(ADDR(w));
                    w = 0;
                    locked = 0;
                    break
                :: else -> w = inner[p]
                fi
            }
        od
    :: atomic { t == 0 && p != 0 && !locked && slot[p] -> // destroy the slot inside (R10)
            locked = 1;
            assert(soda[p]);
            soda[p] = 0
        };
        atomic {
            drop_child();
            w = inner[p];
            retired = retired | BIT(ADDR(w));
            slot[p] = 0; // the place keeps the bits, as an integer that looks like a slot
            parent_written(p);
            w = 0;
            locked = 0
        }
    :: atomic { t == 0 && p != 0 && !locked && !slot[p] -> // construct one there
            drop_child();
            allocate_child(w);
            if
            :: w != 0 ->
                locked = 1;
                inner[p] = w | BORN;
                slot[p] = 1;
                parent_written(p);
                w = 0
            :: else
            fi
        };
        atomic {
            if
            :: locked -> soda[p] = 1; locked = 0
            :: else
            fi
        }
    :: atomic { t == 0 && own == 0 -> // an object of thread 0's own, with an empty slot inside
            allocate_parent(own);
            if
            :: own != 0 -> inner[own] = 0; slot[own] = 1; soda[own] = 1
            :: else
            fi
        }
    :: atomic { t == 0 && own != 0 ->
            assert(soda[own] && inner[own] == 0);
            soda[own] = 0;
            slot[own] = 0;
            parent_live[own] = 0;
            own = 0
        }
    :: atomic { drop_child(); drop_parent(); scope[t] = 0; goto end_outside }
    od
}

#define PASSED(t, E) (scope[t] == 0 || scope[t] >= (E))

inline visit_inner(q) {
    atomic {
        if
        :: soda[q] ->
            assert(parent_live[q] && slot[q]);
            if
            :: inner[q] != 0 ->
                inner[q] = ADDR(inner[q]) | ARMED;
                parent_written(q);
                candidate[q] = inner[q]
            :: else
            fi
        :: else
        fi
    }
}

inline move_child(q) {
    atomic {
        allocate_child(dst_c);
        if
        :: dst_c != 0 -> child_copied = ADDR(candidate[q]); child_stale = 0
        :: else
        fi
    };
    atomic {
        if
        :: dst_c != 0 && soda[q] && inner[q] == candidate[q] ->
            assert(parent_live[q] && slot[q]);
#ifdef REACH_CHILD
            assert(false);
#endif
            w = ADDR(candidate[q]);
            assert(!child_holders[w] && !child_stale);
            inner[q] = dst_c;
            parent_written(q)
        :: else -> w = dst_c
        fi;
        child_copied = 0;
        child_stale = 0;
        dst_c = 0
    };
    atomic {
        if
        :: w != 0 -> assert(child_live[w] && !child_holders[w]); child_live[w] = 0
        :: else
        fi;
        w = 0;
        candidate[q] = 0
    }
}

inline copy_parent() {
    atomic {
        inner[dst] = inner[ADDR(armed_root)];
        slot[dst] = slot[ADDR(armed_root)];
        parent_copied = ADDR(armed_root);
        parent_stale = 0
    }
}

inline move_parent() {
#ifndef MUTANT_COPY_BEFORE_WAIT
    atomic { allocate_parent(dst) };
#endif
    if
    :: dst != 0 ->
#ifndef MUTANT_COPY_BEFORE_WAIT
        copy_parent();
#endif
#ifndef MUTANT_BITS_BEFORE_WAIT
        bits = soda[ADDR(armed_root)];
#endif
#ifndef MUTANT_BITS_AFTER_PUBLISH
        soda[dst] = bits;
#endif
#ifdef MUTANT_VISIT_BETWEEN
        if
        :: candidate[ADDR(armed_root)] != 0 -> move_child(ADDR(armed_root))
        :: else
        fi;
#endif
        atomic {
            if
            :: root == armed_root ->
#ifdef REACH_PARENT
                assert(false);
#endif
                w = ADDR(armed_root);
                assert(!parent_holders[w] && !parent_stale);
                if
                :: root = dst
                :: root = dst | ARMED
                fi
            :: else -> w = dst
            fi;
            parent_copied = 0;
            parent_stale = 0
        };
        if
        :: w != dst ->
#ifdef MUTANT_BITS_AFTER_PUBLISH
            soda[dst] = bits;
#endif
#ifdef MUTANT_FREE_BEFORE_BITS
            parent_live[w] = 0;
#endif
#ifndef MUTANT_SOURCE_BITS_STAY
            soda[w] = 0 // R8: the source's bits, then its memory
#endif
        :: else ->
#ifdef MUTANT_VETO_CLEARS_SOURCE
            soda[ADDR(armed_root)] = 0;
#endif
#ifndef MUTANT_VETO_LEAVES_BITS
            soda[dst] = 0
#endif
        fi;
        atomic {
#ifndef MUTANT_FREE_BEFORE_BITS
            assert(parent_live[w] && !parent_holders[w]);
#endif
            parent_live[w] = 0;
            slot[w] = 0;
            w = 0;
            dst = 0;
            bits = 0
        }
    :: else
    fi;
    armed_root = 0
}

proctype collector() {
    byte window, w, E, dst, dst_c, taken, armed_root;
    byte candidate[NP + 1];
    bit bits;

    do
    :: window < WINDOWS ->
        window++;
        atomic { root = ADDR(root) | ARMED; armed_root = root };
        visit_inner(1);
        visit_inner(2);
        atomic { taken = retired; retired = 0 };
        atomic { epoch++; E = epoch };
#ifdef MUTANT_COPY_BEFORE_WAIT
        atomic { allocate_parent(dst) };
        if
        :: dst != 0 -> copy_parent()
        :: else
        fi;
#endif
#ifdef MUTANT_BITS_BEFORE_WAIT
        bits = soda[ADDR(armed_root)];
#endif
        PASSED(0, E);
        atomic { PASSED(1, E) -> E = 0 };
        atomic {
            w = 1;
            do
            :: w <= NC && (taken & BIT(w)) -> assert(!child_holders[w]); child_live[w] = 0; w++
            :: w <= NC && !(taken & BIT(w)) -> w++
            :: else -> break
            od;
            w = 0;
            taken = 0
        };
        do // in any order, but never the one within the other
        :: armed_root != 0 -> move_parent()
        :: candidate[1] != 0 -> move_child(1)
        :: candidate[2] != 0 -> move_child(2)
        :: armed_root == 0 && candidate[1] == 0 && candidate[2] == 0 -> break
        :: true -> atomic { armed_root = 0; candidate[1] = 0; candidate[2] = 0; break }
        od
    :: else -> break
    od
}

init {
    atomic {
        root = 1 | BORN;
        parent_live[1] = 1;
        inner[1] = 1 | BORN;
        slot[1] = 1;
        soda[1] = 1;
        child_live[1] = 1;
        run app(0);
        run app(1);
        run collector()
    }
}
