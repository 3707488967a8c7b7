// SPDX-License-Identifier: MIT
//
// The pass of handles: pointers stay where their objects were born (home addresses), and every access to memory that may
// belong to a moved object goes to the object's present address. docs/handles.md has the argument.
//
// The steps, in the order in which plugin.cpp takes them:
//   refusals.cpp     what the pass does not do is an error, with the place and the reason
//   in_front.cpp     addresses in front of their object: functions get the object beside them, and so do phis
//   functions.cpp    each function gets a body, which instrumented code calls, and an entry, for everybody else
//   calls.cpp        calls of the C library and of code that may not be instrumented
//   known.cpp        what the functions of the C library do with the addresses they get
//   polls.cpp        which calls may poll, and where the module's functions poll
//   roots.cpp        which addresses need a translation, and which share one
//   translation.cpp  where translations are made, kept and made again
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace obase::handles {

// The names that the passes and the runtime share (obase/handles.h).
class runtime {
  public:
    explicit runtime(llvm::Module& module);

    llvm::GlobalVariable* poll_wanted; // a byte: threads are asked to poll

    mutable llvm::FunctionCallee offline, online; // void ()
    mutable llvm::FunctionCallee enter, leave;    // i64 (), void (i64)
    mutable llvm::FunctionCallee keep, pin, home; // ptr (ptr)
    mutable llvm::FunctionCallee unpin;           // void (ptr)
    mutable llvm::FunctionCallee state, restore;  // i64 (), void (i64)

    // The slow path of a translation, of the register that its name ends with, or of a poll: a call that LLVM takes for
    // no call, so it costs no frame and no register but r11 (src/handles/calls.S). The function has no red zone.
    llvm::FunctionCallee kept_call(llvm::StringRef name, bool translates) const;
    // Another function of the runtime.
    llvm::FunctionCallee named(llvm::StringRef name, llvm::FunctionType* type) const;
    // Of functions that clean up and catch nothing; there in C, too.
    llvm::Constant* cleaning_personality() const;
    // Those whose name begins with it are the runtime's: they get home addresses.
    static constexpr llvm::StringLiteral prefix = "obase_handles_";

    llvm::Module& module;
};

// Metadata of loads that need no translation.
inline constexpr const char* reads_code = "obase.code";

// What a function of the C library does with the addresses that it gets.
struct known_function {
    llvm::StringRef name;
    // A letter for each argument, the last one for all that follow:
    //   t  an address that is used until the call returns: gets the translated one
    //   e  the address of a variable into which an address inside of argument 0 is written (strtol)
    //   h  an address that is handed on: stays a home address
    //   k  an address that is kept: the object comes home for good
    //   f  memory of the library's own, which never moves
    //   -  no address
    llvm::StringRef arguments;
    enum class gives : char {
        other,  // no address, or memory of the library's own
        same,   // the address of argument `of`, or something else
        inside, // null or an address inside of what argument `of` points to
    } result = gives::other;
    unsigned of = 0;
    bool blocks = false; // may wait for long: what it gets is pinned, and the thread is offline
    bool polls = false;  // may run functions of the program, or return twice
    bool iso = false;    // the name is reserved by the C standard: nobody else's
    bool wrapped =
        false; // the runtime has one that takes home addresses: obase_handles_c_ and the name
    bool no_heap = false; // the result is no object of the heap
};
// Null if it is not known, or the call is another function's of the same name.
const known_function* look_up(llvm::StringRef name, const llvm::CallBase& call);
const known_function* look_up(llvm::StringRef name, const llvm::FunctionType& type);

struct module_state {
    explicit module_state(llvm::Module& m) : names(m) {}

    runtime names;
    // The functions that are instrumented: bodies, and thunks that call foreign code.
    llvm::SetVector<llvm::Function*> bodies;
    // The body of each entry; variadic functions that may not be copied are their own.
    llvm::DenseMap<llvm::Function*, llvm::Function*> body_of;
    llvm::DenseMap<const llvm::CallBase*, const known_function*> known;
    // Decided by plan_polls: functions that poll whenever they are called; that never do.
    llvm::DenseSet<const llvm::Function*> surely_polls, never_polls;

    bool is_safepoint(const llvm::CallBase& call) const;
};

// refusals.cpp: true if there was something to refuse; the errors are told to the module's context.
bool refuse(llvm::Module& module);

// in_front.cpp
// Gives local functions that get an address from in front of an object that object, too.
void give_objects(llvm::Module& module);
// Gives phis and selects of addresses that may come from in front of an object that object as their root.
void anchor(module_state& state, llvm::Function& f);

// functions.cpp
void make_bodies(module_state& state);

// calls.cpp
void convert_allocation(module_state& state);
void convert_calls(module_state& state);

// polls.cpp
struct poll_plan {
    bool at_entry = false;
    llvm::SmallVector<llvm::BasicBlock*, 8> headers;
};
llvm::MapVector<llvm::Function*, poll_plan> plan_polls(module_state& state);
// The calls of the poll's slow path, one for each of the plan.
llvm::SmallVector<llvm::CallInst*, 8> insert_polls(module_state& state, llvm::Function& f,
                                                   const poll_plan& plan);

// roots.cpp
struct resolved {
    llvm::Value* root = nullptr; // null: no object of the heap
    bool by_difference = false;  // the way from the root leads through phis
};
class root_finder {
  public:
    explicit root_finder(const llvm::DominatorTree& dominators) : dominators_(dominators) {}
    resolved operator()(llvm::Value* address);

  private:
    llvm::Value* strip(llvm::Value* address) const;
    resolved of_web(llvm::Instruction* first);

    const llvm::DominatorTree& dominators_;
    llvm::DenseMap<llvm::Value*, resolved> webs_;
};

// Every operand of the function through which it reaches memory.
llvm::SmallVector<llvm::Use*, 64> accesses_of(module_state& state, llvm::Function& f);

// translation.cpp
void translate(module_state& state, llvm::Function& f, const poll_plan& plan);

// True if the module may become part of a shared object.
bool is_library(const llvm::Module& module);
// True if the linker, or the loader, may take another definition for this one: calls go by the entry's address.
bool may_be_replaced(const llvm::GlobalValue& f);
// True for what calls.cpp makes of a declaration.
bool is_thunk(const llvm::Function& f);

// The instrumented name of a function.
std::string body_name(llvm::StringRef name);

} // namespace obase::handles
