// SPDX-License-Identifier: MIT
//
// What the pass refuses: with the place, and with the reason.
#include "handles.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace obase::handles {

namespace {

class refuser {
  public:
    explicit refuser(llvm::Module& module) : module_(module) {}

    bool run() {
        for (llvm::Function& f : module_) {
            if (f.isDeclaration()) continue;
            of_attributes(f);
            for (llvm::BasicBlock& block : f)
                for (llvm::Instruction& i : block) of_instruction(i);
        }
        return any_;
    }

  private:
    void tell(const llvm::Function& f, const llvm::DebugLoc& where, const llvm::Twine& what) {
        any_ = true;
        module_.getContext().diagnose(llvm::DiagnosticInfoUnsupported(
            f, "handles: " + what, llvm::DiagnosticLocation(where)));
    }

    void of_attributes(const llvm::Function& f) {
        if (f.hasFnAttribute(llvm::Attribute::SanitizeAddress) ||
            f.hasFnAttribute(llvm::Attribute::SanitizeHWAddress))
            tell(f, {},
                 "AddressSanitizer has a heap of its own and checks where an object was born, not "
                 "where it is");
        else if (f.hasFnAttribute(llvm::Attribute::SanitizeMemory))
            tell(f, {}, "MemorySanitizer has a heap of its own and knows of no copies");
        else if (f.isPresplitCoroutine())
            tell(f, {}, "a coroutine that was not split cannot be translated; compile with -O1");
    }

    static bool marks_field(const llvm::IntrinsicInst& call) {
        if (call.getIntrinsicID() != llvm::Intrinsic::ptr_annotation) return false;
        const auto* text =
            llvm::dyn_cast<llvm::GlobalVariable>(call.getArgOperand(1)->stripPointerCasts());
        const auto* bytes = text != nullptr && text->hasInitializer()
                                ? llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer())
                                : nullptr;
        return bytes != nullptr && bytes->isCString() &&
               bytes->getAsCString().starts_with("obase::");
    }

    void of_instruction(llvm::Instruction& i) {
        const llvm::Function& f = *i.getFunction();
        if (auto* jump = llvm::dyn_cast<llvm::CallBrInst>(&i)) {
            for (llvm::Value* argument : jump->args())
                if (argument->getType()->isPtrOrPtrVectorTy())
                    return tell(f, i.getDebugLoc(), "asm goto with an address is not translated");
            return;
        }
        auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
        if (call == nullptr) return;
        if (call->isInlineAsm()) return of_assembly(*call);
        if (call->isMustTailCall() && call->getFunctionType()->isVarArg())
            return tell(f, i.getDebugLoc(), "a variadic call that must be a tail call");
        const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call);
        if (intrinsic == nullptr) return;
        if (marks_field(*intrinsic))
            return tell(f, i.getDebugLoc(),
                        "a marked field: its objects move by their guides; take the marks out or "
                        "compile without --handles");
        switch (intrinsic->getIntrinsicID()) {
        case llvm::Intrinsic::eh_sjlj_setjmp:
        case llvm::Intrinsic::eh_sjlj_longjmp:
            return tell(f, i.getDebugLoc(),
                        "__builtin_setjmp and __builtin_longjmp; use setjmp and longjmp");
        case llvm::Intrinsic::localescape:
        case llvm::Intrinsic::init_trampoline:
            return tell(f, i.getDebugLoc(), "code that finds its frame from elsewhere");
        default:
            break;
        }
        const llvm::StringRef name = intrinsic->getCalledFunction()->getName();
        for (llvm::Value* argument : call->args()) {
            if (llvm::isa<llvm::ScalableVectorType>(argument->getType()) &&
                argument->getType()->getScalarType()->isPointerTy())
                return tell(f, i.getDebugLoc(), "a vector of addresses of no fixed length");
            if (llvm::isa<llvm::ConstantPointerNull>(argument) && name.starts_with("llvm.x86.") &&
                (name.contains("gather") || name.contains("scatter")))
                return tell(f, i.getDebugLoc(), "a gather whose indices are addresses");
        }
    }

    void of_assembly(const llvm::CallBase& call) {
        const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
        if (llvm::StringRef(assembly->getAsmString()).trim().empty()) return;
        unsigned addresses = 0; // of what may be on the heap, in registers
        bool disguised = false;
        bool writes_memory = false;
        bool returns_address = false;
        unsigned at = 0;
        for (const llvm::InlineAsm::ConstraintInfo& one : assembly->ParseConstraints()) {
            writes_memory |= one.Type == llvm::InlineAsm::isClobber && one.Codes.front() == "{memory}";
            if (!one.hasArg()) continue;
            const llvm::Value* argument = call.getArgOperand(at++);
            if (one.isIndirect)
                writes_memory |= one.Type == llvm::InlineAsm::isOutput;
            else if (argument->getType()->isPointerTy())
                addresses += !is_elsewhere(argument);
            else if (const auto* cast = llvm::dyn_cast<llvm::PtrToIntOperator>(argument))
                disguised |= !is_elsewhere(cast->getPointerOperand());
        }
        const auto tell_of = [&](const char* what) {
            tell(*call.getFunction(), call.getDebugLoc(), what);
        };
        if (disguised)
            return tell_of("assembly that gets an address as a number: whether it is used or handed on "
                           "cannot be seen; pass a pointer");
        llvm::Type* result = call.getType();
        if (result->isPointerTy()) returns_address = true;
        if (const auto* several = llvm::dyn_cast<llvm::StructType>(result))
            for (const llvm::Type* one : several->elements()) returns_address |= one->isPointerTy();
        if (addresses > 0 && returns_address)
            tell_of("assembly that gets and gives addresses in registers: whether they are used or "
                    "handed on cannot be seen");
        else if (addresses > 1 && writes_memory)
            tell_of("assembly that gets two addresses in registers and may write memory: whether it "
                    "writes one where the other leads cannot be seen");
        else if (addresses > 0 && writes_memory && has_memory_output(call))
            tell_of("assembly that gets an address in a register and writes memory: whether it writes "
                    "the address cannot be seen");
    }

    static bool has_memory_output(const llvm::CallBase& call) {
        const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
        return llvm::any_of(assembly->ParseConstraints(), [](const auto& one) {
            return one.hasArg() && one.isIndirect && one.Type == llvm::InlineAsm::isOutput;
        });
    }
    static bool is_elsewhere(const llvm::Value* address) {
        return llvm::isa<llvm::AllocaInst, llvm::GlobalValue, llvm::ConstantPointerNull>(
            llvm::getUnderlyingObject(address, 0));
    }

    llvm::Module& module_;
    bool any_ = false;
};

} // namespace

bool refuse(llvm::Module& module) { return refuser(module).run(); }

} // namespace obase::handles
