// SPDX-License-Identifier: MIT
//
// Handles: a page of homes with two objects, one or two (SECOND_USER) threads of compiled code, a thread of foreign code that has the
// homes, and the collector, which opens the run, takes its page and moves the objects. The foreign thread's fault
// brings them home, in a moment in which no thread has a translation. WINDOWS rounds, USES translations of each
// thread, FOREIGN accesses.
//
// Modelled: the order closing, wait, open, wait, words to the alias, page away, alias ready, copies (evacuator.hpp);
// scopes that do not end but are renewed by polls, offline and online, with the store buffer of coming online
// (threads.hpp); the foreign reader and writer (faults.cpp); the stop.
// Not modelled: frees, pins, thread caches (handles_schedules_test).
//
// Ghosts: truth[o], the value written last, by whomever.

#ifndef WINDOWS
#define WINDOWS 1
#endif
#ifndef FOREIGN
#define FOREIGN 1
#endif
#ifndef USES
#define USES 2
#endif
#define NT 2
#define NO 2
#define NONE 255

#define HOME 0
#define ALIAS 1
#define DENSE 2
#define ARMED 4
#define PLACE(w) ((w) & 3)
#define PLAIN(w) (((w) & ARMED) == 0)
#define NEXT(v) (1 - (v))

byte away;               // 0 at home, 1 closing, 2 open
byte word[NO];           // of the forwarding table, while away == 2
byte data[6];            // by place and object
byte truth[NO];
bit accessible = 1;      // the home page
bit ready;               // the alias
byte epoch = 1;
byte scope[NT];
byte buffered[NT];
bit wanted;
bit stop;
bit work;                // the collector's lock

#define DATA(p, o) data[(p) * 2 + (o)]

inline drain(t) {
    if
    :: buffered[t] != NONE -> scope[t] = buffered[t]; buffered[t] = NONE
    :: else
    fi
}
inline membarrier() { drain(0); drain(1) }

// Epoch, membarrier, and then each thread is out or has polled.
inline wait_for_polls() {
    atomic { wanted = 1; epoch++; membarrier(); target = epoch }
    (scope[0] == 0 || scope[0] >= target);
    (scope[1] == 0 || scope[1] >= target);
    wanted = 0
}

// The address of object `o` for the calling thread, into `at`.
inline translate(o) {
    if
    :: atomic { away != 2 -> at = HOME }
    :: atomic { away == 2 -> seen = word[o] }
       do
       :: PLAIN(seen) -> at = PLACE(seen); break
       :: else ->
#ifndef MUTANT_ALIAS_USED_BEFORE_IT_IS_READY
          if
          :: PLACE(seen) == ALIAS ->
             atomic { (ready || word[o] != seen) -> seen = word[o] }
             if
             :: PLAIN(seen) -> goto_touch = 0
             :: else -> goto_touch = 1
             fi
          :: else -> goto_touch = 1
          fi;
#else
          goto_touch = 1;
#endif
          if
          :: goto_touch ->
             atomic {
                 if
                 :: away == 2 && word[o] == seen &&
                    (PLACE(seen) != ALIAS || ready
#ifdef MUTANT_ALIAS_USED_BEFORE_IT_IS_READY
                     || 1
#endif
                     ) -> word[o] = PLACE(seen); seen = PLACE(seen)
                 :: away != 2 -> seen = HOME
                 :: else -> seen = word[o]
                 fi
             }
          :: else
          fi
       od
    fi
}

// The access of a translation.
inline use(o) {
    atomic {
        assert(at != HOME || accessible);
        assert(at != ALIAS || ready);
        assert(DATA(at, o) == truth[o]);
        if
        :: o == me -> truth[o] = NEXT(truth[o]); DATA(at, o) = truth[o]
        :: true
        fi
    }
}

inline go_online() {
    entered = 0;
    do
    :: entered -> break
    :: else ->
       atomic { seen_epoch = epoch }
       atomic { buffered[me] = seen_epoch } // a plain store
       if
       :: atomic { stop == 0 -> entered = 1 }
       :: atomic {
              stop ->
#ifdef MUTANT_ONLINE_IGNORES_STOPS
              entered = 1
#else
              drain(me); scope[me] = 0
#endif
          }
          (entered || stop == 0)
       fi
    od
}

proctype user(byte me) {
    byte at, seen, seen_epoch, o, times;
    bit goto_touch, entered;
    go_online();
    do
    :: atomic { times == USES -> drain(me); scope[me] = 0 } break
    :: atomic { times < USES -> times++ }
       if
       :: o = 0
       :: o = 1
       fi;
       translate(o);
       use(o);
       // A poll, by exchange; or offline and back.
       if
       :: wanted || stop ->
          if
          :: stop -> atomic { drain(me); scope[me] = 0 } (stop == 0); go_online()
          :: else -> atomic { seen_epoch = epoch } atomic { drain(me); scope[me] = seen_epoch }
          fi
       :: atomic { true -> drain(me); scope[me] = 0 } go_online()
       :: true -> // on with the same translation
          use(o);
          if
          :: wanted -> atomic { seen_epoch = epoch } atomic { drain(me); scope[me] = seen_epoch }
          :: else
          fi
       fi
    :: atomic { buffered[me] != NONE -> drain(me) }
    od
}

inline come_home() {
    atomic { stop = 1; wanted = 1; membarrier() }
#ifndef MUTANT_HOME_WITHOUT_A_STOP
    atomic { scope[0] == 0 && buffered[0] == NONE -> skip }
    atomic { membarrier(); (scope[0] == 0) -> skip }
    atomic { membarrier(); (scope[1] == 0) -> skip }
#endif
    if
    :: away == 2 && !accessible ->
       // Into scratch, which then replaces the page in one step.
       copies[0] = DATA(PLACE(word[0]), 0);
       copies[1] = DATA(PLACE(word[1]), 1);
#ifdef MUTANT_THE_PAGE_RETURNS_EMPTY
       atomic { accessible = 1; data[0] = 3; data[1] = 3 }
       data[0] = copies[0]; data[1] = copies[1];
#else
       atomic { accessible = 1; data[0] = copies[0]; data[1] = copies[1] }
#endif
       word[0] = HOME; word[1] = HOME;
       away = 1;
       away = 0; ready = 0
    :: else
    fi;
    stop = 0; wanted = 0
}

// Foreign code that found a home in memory. Atomic: one instruction, or a fault.
proctype foreign() {
    byte copies[2];
    byte times;
    do
    :: times < FOREIGN ->
       times++;
       if
       :: atomic { accessible -> assert(data[0] == truth[0]); assert(data[1] == truth[1]) }
       :: atomic { accessible -> truth[1] = NEXT(truth[1]); data[1] = truth[1] }
       :: !accessible -> // a fault, whose handler runs later
          if
          :: atomic { away == 0 -> assert(accessible) } // another one's was served: the access is made again
          :: atomic { away != 0 && !work -> work = 1 }
             come_home();
             work = 0
          fi
       fi
    :: break
    od
}

proctype collector() {
    byte target, round, o;
    bit armed, placed;
    byte seen[2];
    do
    :: round == WINDOWS -> break
    :: else ->
       round++;
       atomic { !work -> work = 1 }
       if
       :: away == 0 ->
          away = 1;
          wait_for_polls(); // for frees and thread caches; translations are safe by the second one
          word[0] = ARMED | HOME; word[1] = ARMED | HOME;
          away = 2;
#ifndef MUTANT_TAKEN_WITHOUT_A_WAIT
          wait_for_polls();
#endif
#ifdef MUTANT_COPIED_BEFORE_THE_PAGE_IS_AWAY
          data[4] = data[0]; data[5] = data[1];
#endif
          ready = 0;
          armed = 1;
          o = 0;
          do
          :: o == 2 -> break
          :: else ->
             atomic {
                 if
                 :: armed && word[o] == (ARMED | HOME) -> word[o] = ARMED | ALIAS
                 :: else -> armed = 0
                 fi
             }
             o++
          od;
#ifdef MUTANT_A_TOUCH_IS_OVERLOOKED
          armed = 1;
#endif
          if
          :: armed ->
#ifndef MUTANT_PROTECTED_LAST
             accessible = 0; // one step for all threads
#endif
             atomic { data[2] = data[0]; data[3] = data[1]; data[0] = 3; data[1] = 3 }
#ifdef MUTANT_PROTECTED_LAST
             atomic { data[0] = data[2]; data[1] = data[3] }
#endif
             ready = 1;
             // The mover.
             o = 0;
             do
             :: o == 2 -> break
             :: else ->
                seen[o] = word[o];
                if
                :: seen[o] == (ARMED | ALIAS) ->
#ifndef MUTANT_COPIED_BEFORE_THE_PAGE_IS_AWAY
                   DATA(DENSE, o) = DATA(ALIAS, o);
#endif
                   atomic {
                       if
                       :: word[o] == seen[o] -> word[o] = ARMED | DENSE
#ifdef REACH_PUBLISH
                          ; assert(false)
#endif
#ifdef MUTANT_PUBLISHED_OVER_A_TOUCH
                       :: word[o] != seen[o] -> word[o] = ARMED | DENSE
#endif
                       :: else
                       fi
                   }
                :: else
                fi;
                o++
             od
#ifdef MUTANT_PROTECTED_LAST
             ; accessible = 0
#endif
          :: else ->
             // Back, and closed again.
             o = 0;
             do
             :: o == 2 -> break
             :: else ->
                atomic {
                    if
                    :: word[o] == (ARMED | ALIAS) -> word[o] = ARMED | HOME
                    :: else
                    fi
                }
                o++
             od;
             away = 1;
             away = 0
          fi
       :: else -> // what stayed at the alias, or was brought to dense, is touched and armed again
          skip
       fi;
       work = 0
    od
}

init {
    atomic {
        buffered[0] = NONE; buffered[1] = NONE;
        run user(0);
#ifdef SECOND_USER
        run user(1);
#endif
#ifdef SECOND_FOREIGN
        run foreign();
#endif
        run foreign(); run collector()
    }
}
