// SPDX-License-Identifier: MIT
//
// Accesses of slots become operations on guides.
//
//   %p = load ptr, ptr %slot          %w = load atomic ptr, ptr %slot monotonic
//                                     br (%w < 0), slow, done         ; the sign: obase/word/arming.hpp
//                               slow: %s = call ptr @obase_marked_load(ptr %slot)
//                               done: %p = phi ptr [ %w ], [ %s ]
//   the same, and the address is      br (%w <= 0), odd, done        ; neither armed nor null
//   compared with null, too      odd: br (%w != 0), slow, done
//                               done: %p = phi ptr [ %w ], [ null ], [ %s ], and another phi that tells
//                                     whether it is null
//   the same, compared with null or   %w = load atomic ptr; the tag bits masked; no access
//   prefetched:
//   store ptr null, ptr %slot         store atomic ptr null, ptr %slot release
//   store ptr %p, ptr %slot           call void @obase_marked_store(ptr %slot, ptr %p)
//   store atomic seq_cst, xchg        call ptr @obase_marked_exchange(ptr %slot, ptr %p)
//   cmpxchg                           call i32 @obase_marked_compare_exchange(ptr %slot, ptr, ptr)
//
// That is arming. Under atc every word has tag bits, and no store is a plain one:
//   %p = load ptr, ptr %slot          %w = load atomic ptr, ptr %slot monotonic
//                                     br (%w & @obase_marked_atc_direct, thread-local) == 0, slow, done
//                               slow: %s = call ptr @obase_marked_atc_load(ptr %slot)
//                               done: %p = phi ptr [ %w without the tag bits ], [ %s ]
//   store ptr null, ptr %slot         call void @obase_marked_atc_store(ptr %slot, ptr null)
//
// The load is monotonic, not acquire: what is read through the address depends on it, and on x86-64
// the two are one instruction. An order that the program asks for is kept.
#include "instrumentation.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace obase::passes {

namespace {

// obase/word/arming.hpp, obase/word/atc.hpp
constexpr std::uint64_t address_mask = (std::uint64_t{1} << 48) - 1;

bool is_prefetch(const llvm::User& user) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&user);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}
bool compares_with_null(const llvm::User& user, const llvm::Value& v) {
    const auto* comparison = llvm::dyn_cast<llvm::ICmpInst>(&user);
    if (comparison == nullptr || !comparison->isEquality()) return false;
    const auto* other = llvm::dyn_cast<llvm::Constant>(
        comparison->getOperand(comparison->getOperand(0) == &v ? 1 : 0));
    return other != nullptr && other->isNullValue();
}

class converter {
  public:
    explicit converter(llvm::Module& module)
        : module_(module), protocol_(protocol_of(module)),
          pointer_(llvm::PointerType::getUnqual(module.getContext())),
          word_(llvm::Type::getInt64Ty(module.getContext())),
          boolean_(llvm::Type::getInt32Ty(module.getContext())) {
        llvm::Type* nothing = llvm::Type::getVoidTy(module.getContext());
        load_ = module.getOrInsertFunction(runtime_name(module, "load"), pointer_, pointer_);
        store_ =
            module.getOrInsertFunction(runtime_name(module, "store"), nothing, pointer_, pointer_);
        exchange_ = module.getOrInsertFunction(runtime_name(module, "exchange"), pointer_, pointer_,
                                               pointer_);
        compare_exchange_ = module.getOrInsertFunction(runtime_name(module, "compare_exchange"),
                                                       boolean_, pointer_, pointer_, pointer_);
        for (llvm::FunctionCallee f : {load_, store_, exchange_, compare_exchange_})
            llvm::cast<llvm::Function>(f.getCallee())->setDoesNotThrow();
    }

    void convert(llvm::Instruction& access) {
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&access))
            convert_load(*load);
        else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&access))
            convert_store(*store);
        else if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&access))
            convert_exchange(*rmw);
        else
            convert_compare_exchange(llvm::cast<llvm::AtomicCmpXchgInst>(access));
    }

    // When all accesses have been converted: what has been found out about null is used where it is asked for.
    void use_null_tests() {
        llvm::SmallVector<llvm::Value*, 32> ahead;
        llvm::SetVector<llvm::PHINode*> through;
        for (const auto& [address, is_null] : is_null_) ahead.push_back(address);
        while (!ahead.empty())
            for (llvm::User* user : ahead.pop_back_val()->users())
                if (auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
                    phi != nullptr && !is_null_.contains(phi) && through.insert(phi))
                    ahead.push_back(phi);
        llvm::SmallVector<std::pair<llvm::ICmpInst*, llvm::Value*>, 16> tests;
        const auto note_tests = [&](llvm::Value& v) {
            for (llvm::User* user : v.users())
                if (compares_with_null(*user, v))
                    tests.push_back({llvm::cast<llvm::ICmpInst>(user), &v});
        };
        for (const auto& [address, is_null] : is_null_) note_tests(*address);
        for (llvm::PHINode* phi : through) note_tests(*phi);
        for (const auto& [test, tested] : tests) {
            llvm::Value* is_null = null_test_of(*tested);
            llvm::IRBuilder<> here(test);
            test->replaceAllUsesWith(test->getPredicate() == llvm::ICmpInst::ICMP_EQ
                                         ? is_null
                                         : here.CreateNot(is_null));
            test->eraseFromParent();
        }
    }

  private:
    llvm::Value* null_test_of(llvm::Value& v) {
        if (const auto known = is_null_.find(&v); known != is_null_.end()) return known->second;
        auto* phi = llvm::cast<llvm::PHINode>(&v);
        llvm::IRBuilder<> here(phi);
        llvm::PHINode* is_null = here.CreatePHI(here.getInt1Ty(), phi->getNumIncomingValues());
        is_null_[phi] = is_null;
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
            llvm::Value* one = phi->getIncomingValue(i);
            llvm::BasicBlock* from = phi->getIncomingBlock(i);
            // A block that comes from another by several edges has the same value for each.
            if (const int known = is_null->getBasicBlockIndex(from); known >= 0) {
                is_null->addIncoming(is_null->getIncomingValue(static_cast<unsigned>(known)), from);
                continue;
            }
            if (llvm::isa<llvm::PHINode>(one) &&
                (is_null_.contains(one) || is_tested(*llvm::cast<llvm::Instruction>(one)))) {
                is_null->addIncoming(null_test_of(*one), from);
            } else {
                llvm::IRBuilder<> there(from->getTerminator());
                is_null->addIncoming(there.CreateIsNull(one), from);
            }
        }
        return is_null;
    }

    // True if the address is compared with null, itself or as one of several.
    static bool is_tested(llvm::Instruction& address) {
        llvm::SmallVector<llvm::Instruction*, 8> ahead{&address};
        llvm::DenseSet<llvm::Instruction*> been{&address};
        while (!ahead.empty()) {
            llvm::Instruction* next = ahead.pop_back_val();
            for (llvm::User* user : next->users()) {
                if (compares_with_null(*user, *next)) return true;
                if (auto* phi = llvm::dyn_cast<llvm::PHINode>(user); phi && been.insert(phi).second)
                    ahead.push_back(phi);
            }
        }
        return false;
    }

    // clang's atomics work on integers of the pointer's size.
    llvm::Value* as_pointer(llvm::IRBuilder<>& here, llvm::Value* v) {
        if (v->getType()->isPointerTy()) return v;
        if (auto* cast = llvm::dyn_cast<llvm::PtrToIntInst>(v)) return cast->getPointerOperand();
        if (auto* number = llvm::dyn_cast<llvm::Constant>(v); number && number->isNullValue())
            return llvm::ConstantPointerNull::get(pointer_);
        return here.CreateIntToPtr(v, pointer_);
    }
    llvm::Value* as(llvm::IRBuilder<>& here, llvm::Value* pointer, llvm::Type* type) {
        return type->isPointerTy() ? pointer : here.CreatePtrToInt(pointer, type);
    }

    void convert_load(llvm::LoadInst& load) {
        llvm::IRBuilder<> here(&load);
        auto* word = here.CreateAlignedLoad(pointer_, load.getPointerOperand(), llvm::Align(8));
        word->setVolatile(load.isVolatile());
        word->setAtomic(load.isAtomic() && load.getOrdering() != llvm::AtomicOrdering::Unordered
                            ? load.getOrdering()
                            : llvm::AtomicOrdering::Monotonic);
        llvm::Value* bits = here.CreatePtrToInt(word, word_);
        if (is_no_access(load)) {
            llvm::Value* address = here.CreateAnd(bits, address_mask);
            llvm::Value* is_null = here.CreateICmpEQ(address, llvm::ConstantInt::get(word_, 0));
            convert_uses(load, address, is_null);
            load.eraseFromParent();
            return;
        }
        if (protocol_ == protocol::arming && is_tested(load)) {
            convert_tested_load(load, *word, *bits);
            return;
        }
        llvm::Value* zero = llvm::ConstantInt::get(word_, 0);
        llvm::Value* fast = word;
        llvm::Value* is_slow = nullptr;
        if (protocol_ == protocol::arming) {
            is_slow = here.CreateICmpSLT(bits, zero);
        } else {
            fast = here.CreateIntToPtr(here.CreateAnd(bits, address_mask), pointer_);
            llvm::Value* direct =
                here.CreateLoad(word_, here.CreateThreadLocalAddress(direct_variable()));
            is_slow = here.CreateICmpEQ(here.CreateAnd(bits, direct), zero);
        }
        llvm::BasicBlock* before = load.getParent();
        llvm::Instruction* end = llvm::SplitBlockAndInsertIfThen(
            is_slow, load.getIterator(), false,
            llvm::MDBuilder(load.getContext()).createBranchWeights(1, 2000));
        llvm::IRBuilder<> slow(end);
        slow.SetCurrentDebugLocation(load.getDebugLoc());
        llvm::Value* touched = slow.CreateCall(load_, {load.getPointerOperand()});
        llvm::IRBuilder<> after(&load);
        llvm::PHINode* address = after.CreatePHI(pointer_, 2);
        address->addIncoming(fast, before);
        address->addIncoming(touched, end->getParent());
        replace(after, load, address);
    }

    // One branch tells apart what is neither armed nor null. Whether it is null is known from where it comes
    // from, and tests of it become values that optimization turns into jumps.
    void convert_tested_load(llvm::LoadInst& load, llvm::LoadInst& word, llvm::Value& bits) {
        llvm::IRBuilder<> here(&load);
        llvm::Value* zero = llvm::ConstantInt::get(word_, 0);
        llvm::MDNode* unlikely = llvm::MDBuilder(load.getContext()).createBranchWeights(1, 2000);
        llvm::BasicBlock* before = load.getParent();
        llvm::Instruction* end = llvm::SplitBlockAndInsertIfThen(
            here.CreateICmpSLE(&bits, zero), load.getIterator(), false, unlikely);
        llvm::BasicBlock* odd = end->getParent();
        llvm::BasicBlock* done = load.getParent();
        llvm::IRBuilder<> slow(end);
        slow.SetCurrentDebugLocation(load.getDebugLoc());
        llvm::Instruction* called = llvm::SplitBlockAndInsertIfThen(slow.CreateICmpNE(&bits, zero),
                                                                    end->getIterator(), false);
        llvm::BasicBlock* after_odd = end->getParent(); // where both of the slow ways meet
        llvm::IRBuilder<> armed(called);
        armed.SetCurrentDebugLocation(load.getDebugLoc());
        llvm::Value* touched = armed.CreateCall(load_, {load.getPointerOperand()});
        llvm::Value* touched_null = armed.CreateIsNull(touched);
        // Both ways go to the end by themselves.
        called->getParent()->getTerminator()->replaceSuccessorWith(after_odd, done);
        odd->getTerminator()->replaceSuccessorWith(after_odd, done);
        after_odd->eraseFromParent();

        llvm::IRBuilder<> after(done, done->begin());
        llvm::PHINode* address = after.CreatePHI(pointer_, 3);
        address->addIncoming(&word, before);
        address->addIncoming(llvm::ConstantPointerNull::get(pointer_), odd);
        address->addIncoming(touched, called->getParent());
        llvm::PHINode* is_null = after.CreatePHI(after.getInt1Ty(), 3);
        is_null->addIncoming(after.getFalse(), before);
        is_null->addIncoming(after.getTrue(), odd);
        is_null->addIncoming(touched_null, called->getParent());
        is_null_[address] = is_null;
        llvm::IRBuilder<> there(&load);
        replace(there, load, address);
    }

    // src/runtime/marked_atc.cpp
    llvm::GlobalVariable* direct_variable() {
        auto* v = llvm::cast<llvm::GlobalVariable>(
            module_.getOrInsertGlobal("obase_marked_atc_direct", word_));
        v->setThreadLocalMode(llvm::GlobalValue::InitialExecTLSModel); // obase/export.hpp
        return v;
    }

    // Uses of an integer that go back to a pointer are those of the pointer.
    void replace(llvm::IRBuilder<>& here, llvm::Instruction& old, llvm::Value* pointer) {
        if (old.getType()->isPointerTy()) {
            old.replaceAllUsesWith(pointer);
        } else {
            for (llvm::User* user : llvm::make_early_inc_range(old.users()))
                if (auto* cast = llvm::dyn_cast<llvm::IntToPtrInst>(user)) {
                    cast->replaceAllUsesWith(pointer);
                    cast->eraseFromParent();
                }
            if (!old.use_empty()) old.replaceAllUsesWith(as(here, pointer, old.getType()));
        }
        old.eraseFromParent();
    }

    // Of a load that is no access, or of the pointer that the number becomes.
    void convert_uses(llvm::Instruction& loaded, llvm::Value* address, llvm::Value* is_null) {
        llvm::IRBuilder<> here(&loaded);
        llvm::Value* pointer = nullptr;
        for (llvm::User* user : llvm::make_early_inc_range(loaded.users())) {
            auto* use = llvm::cast<llvm::Instruction>(user);
            if (auto* comparison = llvm::dyn_cast<llvm::ICmpInst>(use)) {
                llvm::IRBuilder<> there(comparison);
                comparison->replaceAllUsesWith(comparison->getPredicate() == llvm::ICmpInst::ICMP_EQ
                                                   ? is_null
                                                   : there.CreateNot(is_null));
                comparison->eraseFromParent();
            } else if (auto* cast = llvm::dyn_cast<llvm::IntToPtrInst>(use)) {
                convert_uses(*cast, address, is_null);
                cast->eraseFromParent();
            } else {
                if (pointer == nullptr) pointer = here.CreateIntToPtr(address, pointer_);
                use->replaceUsesOfWith(&loaded, pointer); // a prefetch
            }
        }
    }

    void convert_store(llvm::StoreInst& store) {
        llvm::IRBuilder<> here(&store);
        llvm::Value* value = as_pointer(here, store.getValueOperand());
        const bool in_order = store.getOrdering() == llvm::AtomicOrdering::SequentiallyConsistent;
        // Under atc no store is a plain one: it would take away the counts in the word.
        if (protocol_ == protocol::arming && llvm::isa<llvm::ConstantPointerNull>(value)) {
            auto* fresh = here.CreateAlignedStore(value, store.getPointerOperand(), llvm::Align(8));
            fresh->setVolatile(store.isVolatile());
            fresh->setAtomic(in_order ? store.getOrdering() : llvm::AtomicOrdering::Release);
        } else {
            here.CreateCall(in_order ? exchange_ : store_, {store.getPointerOperand(), value});
        }
        store.eraseFromParent();
    }

    void convert_exchange(llvm::AtomicRMWInst& rmw) {
        llvm::IRBuilder<> here(&rmw);
        llvm::Value* value = as_pointer(here, rmw.getValOperand());
        llvm::Value* old = here.CreateCall(exchange_, {rmw.getPointerOperand(), value});
        replace(here, rmw, old);
    }

    void convert_compare_exchange(llvm::AtomicCmpXchgInst& exchange) {
        llvm::IRBuilder<> here(&exchange);
        llvm::BasicBlock& entry = exchange.getFunction()->getEntryBlock();
        llvm::IRBuilder<> top(&entry, entry.begin());
        llvm::AllocaInst* expected = top.CreateAlloca(pointer_);
        here.CreateStore(as_pointer(here, exchange.getCompareOperand()), expected);
        llvm::Value* desired = as_pointer(here, exchange.getNewValOperand());
        llvm::Value* done = here.CreateICmpNE(
            here.CreateCall(compare_exchange_, {exchange.getPointerOperand(), expected, desired}),
            llvm::ConstantInt::get(boolean_, 0));
        llvm::Value* seen = here.CreateLoad(pointer_, expected);
        for (llvm::User* user : llvm::make_early_inc_range(exchange.users()))
            if (auto* part = llvm::dyn_cast<llvm::ExtractValueInst>(user)) {
                if (part->getIndices()[0] == 1) {
                    part->replaceAllUsesWith(done);
                    part->eraseFromParent();
                } else {
                    llvm::IRBuilder<> there(part);
                    replace(there, *part, seen);
                }
            }
        if (!exchange.use_empty()) {
            llvm::Value* pair = llvm::PoisonValue::get(exchange.getType());
            pair = here.CreateInsertValue(
                pair, as(here, seen, exchange.getCompareOperand()->getType()), 0);
            exchange.replaceAllUsesWith(here.CreateInsertValue(pair, done, 1));
        }
        exchange.eraseFromParent();
    }

    llvm::Module& module_;
    protocol protocol_;
    llvm::PointerType* pointer_;
    llvm::Type* word_;
    llvm::Type* boolean_;
    llvm::MapVector<llvm::Value*, llvm::Value*> is_null_; // of addresses that were loaded
    llvm::FunctionCallee load_, store_, exchange_, compare_exchange_;
};

bool touches_nothing(const llvm::Value& loaded) {
    return llvm::all_of(loaded.users(), [&](const llvm::User* user) {
        if (const auto* cast = llvm::dyn_cast<llvm::IntToPtrInst>(user))
            return touches_nothing(*cast);
        return is_prefetch(*user) || compares_with_null(*user, loaded);
    });
}

} // namespace

bool is_no_access(const llvm::LoadInst& load) { return touches_nothing(load); }

void convert_accesses(llvm::Module& module, slots& fields) {
    if (fields.annotations.empty()) return;
    converter all(module);
    for (llvm::Instruction* access : fields.accesses) all.convert(*access);
    all.use_null_tests();
    for (llvm::CallInst* annotation : fields.annotations) {
        annotation->replaceAllUsesWith(annotation->getArgOperand(0));
        annotation->eraseFromParent();
    }
    // They named instructions that are gone.
    fields.accesses.clear();
    fields.addresses.clear();
    fields.annotations.clear();
}

} // namespace obase::passes
