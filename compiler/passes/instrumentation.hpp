// SPDX-License-Identifier: MIT
//
// The pass that turns marked pointers into guides: what its steps know of each other.
//
// The steps, in the order in which plugin.cpp takes them:
//   marks.cpp           what the front end said: OBASE_GUIDED fields, entry and internal functions
//   slot_addresses.cpp  every value that is the address of a marked field, and every access there
//   allocation.cpp      which allocations end in marked fields
//   scopes.cpp          which functions are operations
//   escapes.cpp         whether an address from a marked field can outlive its operation
//   owners.cpp          whether an operation leaves a new object in two marked fields
//   known_functions.cpp what functions of the libraries do with an address
//   trust.cpp           what they could not check
//   problems.cpp        errors, with locations in the source and what to do
// and if there are no errors
//   overwritten.cpp     slots end that are cleared as bytes
//   site_table.cpp      what the audit's reports say of an access
//   conversion.cpp      accesses become calls of the runtime (obase/marked.h)
//   allocation.cpp      so do allocations that end in marked fields, and all frees
//   scopes.cpp          operations are entered and left, slots in frames forgotten
//   jumps.cpp           operations that were left by longjmp end
//   protocol.cpp        which of the runtime's protocols it is; all of a program agree
//
// Everything that is not understood is an error. An access that stays what it was would read the
// word of an armed guide as an address.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

#include <set>
#include <string>
#include <vector>

namespace obase::passes {

// Errors of the module that is being compiled.
class problems {
  public:
    explicit problems(llvm::Module& module) : module_(module) {}

    // An error at the instruction. `what` says what is wrong and what to do.
    void refuse(const llvm::Instruction& where, const llvm::Twine& what);
    void refuse(const llvm::Function& where, const llvm::Twine& what);
    // The same for what has no place in a function.
    void refuse(const llvm::Twine& what);
    // A warning at the instruction.
    void warn(const llvm::Instruction& where, const llvm::Twine& what);

    bool any() const { return !told_.empty(); }

  private:
    llvm::Module& module_;
    std::set<std::string> warned_;
    std::set<std::string> told_; // once each: a template is compiled many times
};

// Of a function, as the front end or the source says it.
enum class role {
    unknown,
    entry,    // an operation: has a scope of its own
    internal, // a part of operations: is called in a scope, may hand borrowed addresses around
};

// Where in the source the instruction is, file:line:column, in the function itself that it was inlined
// into; without debug information the function's name.
std::string place_of(const llvm::Instruction& where);

// Assumptions that cannot be checked: what code that is not compiled here does with an address from
// a marked field.
class trust {
  public:
    // The argument is such an address, or that of a variable which holds one.
    void accept(const llvm::CallBase& call, unsigned argument, bool is_address);
    // Into the file that -obase-trust names, if it does.
    void write(const llvm::Module& module, problems& errors) const;

  private:
    std::set<std::string> rows_; // once each, in an order that does not change
};

struct marks {
    llvm::DenseMap<const llvm::Function*, role> roles;
    // Functions that allocate what they return, for marked fields among other things.
    llvm::SetVector<llvm::Function*> makers;
    // With which marked fields end, whether or not they name them.
    llvm::DenseSet<const llvm::Function*> destructors;
    // Marked variables of the unit's own, and whether what they hold is an array of slots.
    llvm::MapVector<llvm::GlobalVariable*, bool> variables;
    // The twins made by add_managing_twins.
    llvm::SetVector<llvm::Function*> managing_twins;

    role of(const llvm::Function& f) const {
        const auto found = roles.find(&f);
        return found != roles.end() ? found->second : role::unknown;
    }
};

// The meaning of the words in slots. A property of the module, and of the whole program.
enum class protocol { arming, atc };
// Chosen once, before anything is converted.
void choose_protocol(llvm::Module& module, protocol chosen);
protocol protocol_of(const llvm::Module& module);
// The function `name` of obase/marked.h in the module's protocol: "load" is obase_marked_load, or
// obase_marked_atc_load.
std::string runtime_name(const llvm::Module& module, llvm::StringRef name);
// If the module calls any: has it tell the runtime its protocol, and whether it is compiled with
// -fsanitize=thread, when it is loaded, before its own constructors.
void tell_runtime(llvm::Module& module);

// Reads the annotations of functions and takes them out of the module.
marks read_marks(llvm::Module& module);
// What the front end says of the field: its name, type and place, separated by tabs; "" if it does not.
llvm::StringRef about_field(const llvm::Value& annotation);
// True if the instruction says that its operand is the address of a marked field.
bool is_field_annotation(const llvm::Value& v);
// The same, and that what the field holds is an array whose elements are slots.
bool is_elements_annotation(const llvm::Value& v);
// True if the function is called through a field that the marks name as one that allocates.
bool is_maker(const llvm::CallBase& call);
// Where functions use marked variables, their addresses are annotated as those of fields.
void annotate_variables(const marks& said);
// The variable of which the instruction says that it holds marked fields, else null.
llvm::AllocaInst* annotated_variable(llvm::Instruction& i);

struct slots {
    llvm::SetVector<llvm::CallInst*> annotations; // of fields
    llvm::DenseSet<const llvm::Value*> addresses; // of slots
    // Loads, stores, exchanges and compare-exchanges of slots.
    llvm::SetVector<llvm::Instruction*> accesses;
    // Struct types that have a marked field among their own.
    llvm::DenseSet<const llvm::StructType*> types;
    // Variables in frames that have one.
    llvm::SetVector<llvm::AllocaInst*> variables;
    // Functions that access a marked field of their first parameter, which may be `this`.
    llvm::DenseSet<const llvm::Function*> members;

    bool has(const llvm::Value* address) const { return addresses.contains(address); }
    bool is_access(const llvm::Instruction* i) const {
        return accesses.contains(const_cast<llvm::Instruction*>(i));
    }
    // True if a variable of the type has slots in it.
    bool in_type(llvm::Type* type) const;
};

// Simplifies the module until every access to a marked field can be seen: variables become values,
// functions that take or return the address of a field are inlined.
// Copies of functions get the marks of the originals.
slots find_slots(llvm::Module& module, llvm::FunctionAnalysisManager& analyses, marks& said,
                 problems& errors);

// The calls of malloc, operator new and the like.
bool is_allocation(const llvm::CallBase& call);
bool is_free(const llvm::CallBase& call);
// These, realloc and malloc_usable_size: the runtime's take their place.
bool is_memory_call(const llvm::CallBase& call);
bool reallocates(const llvm::CallBase& call);
// asprintf and vasprintf: they allocate what their first argument says where to put.
bool prints_into_argument(const llvm::CallBase& call);

// The program's own malloc (annotated "obase::makes") may serve more than marked fields, and may be
// called from other translation units: each one that is defined here gets a twin, whose name ends in
// ".obase", and which returns managed memory. Nothing else calls the twin but what
// convert_allocations makes call it, here or elsewhere.
void add_managing_twins(marks& said);

struct allocations {
    // Whose results are stored into slots: calls of allocation functions, of realloc, and of the
    // program's own.
    llvm::SetVector<llvm::CallBase*> found;
    // Calls of asprintf into a variable whose value is.
    llvm::SetVector<llvm::CallBase*> printed;
    // Calls of functions that are no part of operations, and seem to make what is stored.
    llvm::SetVector<llvm::CallBase*> hiding;
    // Calls of functions that are not compiled here, and seem to.
    llvm::SetVector<llvm::CallBase*> others;
};
allocations find_allocations(const llvm::Module& module, const slots& fields, const marks& said);

// Warns of marked fields into which something is stored that a function of elsewhere makes, and nothing that is managed.
void warn_of_unreached(const llvm::Module& module, const slots& fields, const marks& said,
                       problems& errors);

// True if every call of the function is in a scope: it needs none of its own, may hand borrowed
// addresses around, and what it allocates for a slot may be managed.
bool is_called_inside_only(const llvm::Function& f, const marks& said);

struct scope_plan {
    // Functions that enter and leave.
    llvm::SetVector<llvm::Function*> operations;
};
scope_plan plan_scopes(llvm::Module& module, const slots& fields, const marks& said,
                       problems& errors);

// What the front end says of the field that the access is about; "" if it does not.
llvm::StringRef about_access(const llvm::Instruction& access);
// Leaves a table of the marked fields and of their accesses in the section .obase.sites, which is not loaded
// (src/audit/places.hpp). Before the accesses are converted; gives each the place that the table says.
void make_site_table(llvm::Module& module, const slots& fields, const marks& said,
                     const scope_plan& plan);
// What a function that is not compiled here does with the addresses that it is handed, as far as its
// name tells.
struct known_function {
    enum class gives {
        unknown,  // perhaps an address that it got, or one inside of what that points to
        argument, // the address that it got as argument `of`
        part,     // an address inside of what that points to
        other,    // neither
    };
    llvm::StringRef name;
    unsigned keeps = 0; // a bit for each argument that it still has when it has returned
    gives result = gives::unknown;
    unsigned of = 0;
    int end = -1; // the argument through which it hands out an address inside of argument 0
    int calls =
        -1; // the argument that it calls with addresses inside of what argument `of` points to
    bool reads_variable_arguments = false; // and neither keeps nor returns them
};
known_function look_up(const llvm::Function& f);

void check_escapes(llvm::Module& module, const slots& fields, const allocations& allocated,
                   const marks& said, const scope_plan& plan, problems& errors, trust& accepted);

void check_owners(llvm::Module& module, const slots& fields, const allocations& allocated,
                  const scope_plan& plan, problems& errors);

// Slots in memory that is set to zero, or to a variable's initial value, end before.
void end_overwritten_slots(llvm::Module& module, const slots& fields, const marks& said);
void convert_accesses(llvm::Module& module, slots& fields);
// True if the object is not touched: its address is only compared with null, or prefetched.
bool is_no_access(const llvm::LoadInst& load);
void convert_allocations(llvm::Module& module, const allocations& allocated);

// The calls by which a function is an operation: one at its beginning, one at each of its exits.
struct scope_calls {
    llvm::CallInst* enter;
    llvm::SmallVector<llvm::CallInst*, 4> leaves;
};
std::vector<scope_calls> insert_scopes(llvm::Module& module, const slots& fields, const marks& said,
                                       const scope_plan& plan, problems& errors);
// Puts instructions in their place, where the protocol is arming.
void inline_scopes(llvm::Module& module, llvm::ArrayRef<scope_calls> calls);

// Operations end at a setjmp that longjmp has come back to.
void end_operations_at_jumps(llvm::Module& module);

// True if the address becomes a number for a sanitizer's check (null, alignment, size, overflow),
// which compares it and reports, and keeps nothing. clang says so of all that it puts in for one.
bool is_sanitizer_check(const llvm::Instruction& i);

// The function that is called, through aliases; null if it cannot be known.
llvm::Function* callee_of(const llvm::CallBase& call);
// Calls use(call) for every call of the function by its name. False if it is used otherwise, too, so
// that there may be calls that are not seen.
bool for_each_call(const llvm::Function& f, llvm::function_ref<void(llvm::CallBase&)> use);

// walks.cpp: behind the optimizer's work on loops.
class unroll_walks : public llvm::PassInfoMixin<unroll_walks> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses);
};

} // namespace obase::passes
