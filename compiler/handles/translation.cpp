// SPDX-License-Identifier: MIT
//
// Where translations are made. For each root a translation is *available* at a place if on every way there one was made
// since the root got its value, with no safepoint in between. Where an access finds none, one is made in front of it; in front
// of a loop without safepoints rather than inside; in front of a branch rather than on each of its ways; and at the ends of
// those ways to a junction where it is missing, if they are seldom taken. There a phi of addresses may get a translation that
// is a phi of theirs. A poll that takes its slow path makes those again that are needed after it.
//
// A translation is
//
//     if (obase_handles_away[home >> 16 & 0xffffff] == 0) address = home; else address = obase_handles_translate(home);
//
// (the table is at %gs:0, see obase_handles_enter), or a call of obase_handles_tested, which does all of that, where code is
// hardly ever reached or must be small. It lives in a variable of the function until LLVM makes values of them.
#include "handles.hpp"

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

namespace obase::handles {

namespace {

constexpr unsigned run_bits = 16;        // a byte of the table for each 64 KiB
constexpr unsigned table_bits = 24;      // of its index
constexpr unsigned relative_to_gs = 256; // LLVM's number of the address space

// At a junction, so often a translation may be made for each use.
constexpr double worthwhile = .75;

// A way that is taken less often than this leads to code that is hardly ever reached: it is marked as unlikely, ends the
// program, or was so in a profile. Loops are left more often, and what LLVM guesses of conditions is not so certain.
constexpr double hardly_ever = .01;

struct access {
    llvm::Use* use;
    unsigned root;
    bool by_difference;
};

struct event {
    enum kind { wanted, defined, joined, safepoint, poll } what;
    unsigned root;          // of wanted, defined and joined
    llvm::Instruction* at;  // translations are made in front of it
    bool available = false; // of wanted: one is there
};

struct variables {
    llvm::AllocaInst* address = nullptr;
    llvm::AllocaInst* difference = nullptr; // null if it is not needed
};

class translator {
  public:
    translator(module_state& state, llvm::Function& f)
        : state_(state), f_(f), weights_(f.getContext()),
          pointer_(llvm::PointerType::getUnqual(f.getContext())),
          table_pointer_(llvm::PointerType::get(f.getContext(), relative_to_gs)),
          word_(llvm::Type::getInt64Ty(f.getContext())) {}

    void run(const poll_plan& plan) {
        llvm::removeUnreachableBlocks(f_);
        anchor(state_, f_);
        f_.addFnAttr(llvm::Attribute::NoRedZone);
        for (llvm::CallInst* call : insert_polls(state_, f_, plan)) polls_.insert(call);
        find_accesses();
        if (roots_.empty()) return;
        llvm::DominatorTree dominators(f_);
        llvm::LoopInfo loops(dominators);
        make_preheaders(loops, dominators);
        llvm::BranchProbabilityInfo probabilities(f_, loops);
        llvm::BlockFrequencyInfo frequencies(f_, probabilities, loops);
        hoist(loops, frequencies);
        number_blocks();
        make_events();
        ahead_of_branches(dominators);
        for (unsigned round = 0; round < 3; ++round) {
            make_events();
            find_available();
            if (!at_junctions(frequencies)) break;
        }
        make_events();
        find_available();
        find_needed();
        make_variables();
        insert(seldom_reached(probabilities));
        join();
        rewrite();
        llvm::DominatorTree after(f_);
        llvm::PromoteMemToReg(allocas_, after);
    }

  private:
    void find_accesses() {
        const llvm::SmallVector<llvm::Use*, 64> uses = accesses_of(state_, f_);
        llvm::DominatorTree dominators(f_);
        root_finder find(dominators);
        llvm::DenseMap<llvm::Value*, unsigned> numbers;
        for (llvm::Use* use : uses) {
            const resolved of = find(use->get());
            if (of.root == nullptr) continue;
            const auto [at, made] = numbers.try_emplace(of.root, unsigned(roots_.size()));
            if (made) roots_.push_back(of.root);
            accesses_.push_back({use, at->second, of.by_difference});
        }
        difference_used_.resize(unsigned(roots_.size()));
        for (const access& one : accesses_)
            if (one.by_difference) difference_used_.set(one.root);
    }

    bool has_safepoint(const llvm::BasicBlock& block) const {
        for (const llvm::Instruction& i : block)
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i))
                if (!polls_.contains(call) && state_.is_safepoint(*call)) return true;
        return false;
    }

    void make_preheaders(llvm::LoopInfo& loops, llvm::DominatorTree& dominators) {
        for (llvm::BasicBlock& block : f_)
            if (has_safepoint(block))
                for (llvm::Loop* l = loops.getLoopFor(&block); l != nullptr; l = l->getParentLoop())
                    interrupted_.insert(l);
        for (llvm::Loop* loop : loops.getLoopsInPreorder())
            if (!interrupted_.contains(loop) && loop->getLoopPreheader() == nullptr)
                llvm::InsertPreheaderForLoop(loop, &dominators, &loops, nullptr, false);
    }

    static const llvm::BasicBlock* block_of(const llvm::Value* root) {
        const auto* i = llvm::dyn_cast<llvm::Instruction>(root);
        return i != nullptr ? i->getParent() : nullptr;
    }

    // The outermost loop around the block through which one translation of the root lasts.
    llvm::Loop* lasting(llvm::LoopInfo& loops, llvm::BasicBlock* block, unsigned root) const {
        llvm::Loop* found = nullptr;
        const llvm::BasicBlock* from = block_of(roots_[root]);
        for (llvm::Loop* loop = loops.getLoopFor(block);
             loop != nullptr && !interrupted_.contains(loop) &&
             (from == nullptr || !loop->contains(from));
             loop = loop->getParentLoop())
            if (loop->getLoopPreheader() != nullptr) found = loop;
        return found;
    }

    static double frequency_of(const llvm::BlockFrequencyInfo& all, const llvm::BasicBlock* block) {
        return double(all.getBlockFreq(block).getFrequency());
    }

    void hoist(llvm::LoopInfo& loops, const llvm::BlockFrequencyInfo& frequencies) {
        llvm::MapVector<std::pair<llvm::BasicBlock*, unsigned>, double> saved;
        for (const access& one : accesses_) {
            llvm::BasicBlock* block =
                llvm::cast<llvm::Instruction>(one.use->getUser())->getParent();
            if (llvm::Loop* loop = lasting(loops, block, one.root))
                saved[{loop->getLoopPreheader(), one.root}] += frequency_of(frequencies, block);
        }
        for (const auto& [where, frequency] : saved)
            if (frequency >= frequency_of(frequencies, where.first))
                wanted_at_end_[where.first].insert(where.second);
    }

    void number_blocks() {
        for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&f_)) {
            numbers_[block] = unsigned(order_.size());
            order_.push_back(block);
        }
        for (unsigned i = 0; i < roots_.size(); ++i) number_of_root_[roots_[i]] = i;
    }

    void make_events() {
        llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<unsigned, 2>> wanted, defined;
        for (const access& one : accesses_) {
            auto& list = wanted[llvm::cast<llvm::Instruction>(one.use->getUser())];
            if (!llvm::is_contained(list, one.root)) list.push_back(one.root);
        }
        for (unsigned i = 0; i < roots_.size(); ++i)
            if (const auto* root = llvm::dyn_cast<llvm::Instruction>(roots_[i]))
                defined[root].push_back(i);
        events_.clear();
        available_at_.clear();
        for (llvm::BasicBlock* block : order_) {
            auto& events = events_.emplace_back();
            const auto at_end = wanted_at_end_.find(block);
            for (llvm::Instruction& i : *block) {
                if (i.isTerminator() && at_end != wanted_at_end_.end())
                    for (const unsigned root : at_end->second)
                        events.push_back({event::wanted, root, &i});
                if (const auto found = wanted.find(&i); found != wanted.end())
                    for (const unsigned root : found->second)
                        events.push_back({event::wanted, root, &i});
                if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
                    if (polls_.contains(call))
                        events.push_back({event::poll, 0, &i});
                    else if (state_.is_safepoint(*call))
                        events.push_back({event::safepoint, 0, &i});
                }
                if (const auto found = defined.find(&i); found != defined.end())
                    for (const unsigned root : found->second) {
                        events.push_back({event::defined, root, &i});
                        if (joined_.contains(root)) events.push_back({event::joined, root, &i});
                    }
            }
        }
    }

    // Ways that never end want everything.
    bool has_value(unsigned root, const llvm::Instruction* where,
                   const llvm::DominatorTree& dominators) const {
        const auto* definition = llvm::dyn_cast<llvm::Instruction>(roots_[root]);
        return definition == nullptr || dominators.dominates(definition, where);
    }

    // True if the block ends with the test of a poll.
    bool polls(const llvm::BasicBlock* block) const {
        const llvm::BasicBlock* maybe = *llvm::succ_begin(block);
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&maybe->front());
        return call != nullptr && polls_.contains(call);
    }

    // In front of a branch if it is wanted on each of its ways.
    void ahead_of_branches(const llvm::DominatorTree& dominators) {
        const auto count = unsigned(roots_.size());
        std::vector<llvm::BitVector> at_begin(order_.size(), llvm::BitVector(count, true));
        const auto at_end = [&](unsigned i) {
            llvm::BitVector now(count);
            bool first = true;
            for (llvm::BasicBlock* after : llvm::successors(order_[i])) {
                if (first)
                    now = at_begin[numbers_.lookup(after)];
                else
                    now &= at_begin[numbers_.lookup(after)];
                first = false;
            }
            return now;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (auto i = unsigned(order_.size()); i-- > 0;) {
                llvm::BitVector now = at_end(i);
                for (const event& one : llvm::reverse(events_[i])) {
                    if (one.what == event::wanted) now.set(one.root);
                    if (one.what == event::defined) now.reset(one.root);
                    if (one.what == event::safepoint) now.reset();
                }
                if (now == at_begin[i]) continue;
                at_begin[i] = std::move(now);
                changed = true;
            }
        }
        for (unsigned i = 0; i < order_.size(); ++i) {
            const llvm::Instruction* end = order_[i]->getTerminator();
            if (end->getNumSuccessors() < 2 || llvm::isa<llvm::CallBase>(end) || polls(order_[i]))
                continue;
            for (const unsigned root : at_end(i).set_bits())
                if (has_value(root, end, dominators)) wanted_at_end_[order_[i]].insert(root);
        }
        anticipated_ = std::move(at_begin);
    }

    // What an incoming value of a phi is made from; null and memory of frames are their own translations.
    struct incoming {
        bool possible;
        resolved from;
    };
    incoming incoming_of(llvm::Value* value, const llvm::BasicBlock* from, root_finder& find) {
        const llvm::Instruction* end = from->getTerminator();
        if (llvm::isa<llvm::CallBase>(end)) return {false, {}};
        const resolved of = find(value);
        return {of.root == nullptr || number_of_root_.contains(of.root), of};
    }

    // Completes what is available on some ways to a junction, if the others are seldom taken. True if there was any.
    bool at_junctions(const llvm::BlockFrequencyInfo& frequencies) {
        llvm::DominatorTree dominators(f_);
        root_finder find(dominators);
        bool any = false;
        for (unsigned i = 1; i < order_.size(); ++i) {
            llvm::BasicBlock* block = order_[i];
            if (block->isEHPad()) continue;
            const llvm::SmallVector<llvm::BasicBlock*, 8> before(llvm::predecessors(block));
            if (before.size() < 2) continue;
            if (llvm::any_of(before, [](const llvm::BasicBlock* one) {
                    return llvm::isa<llvm::CallBase>(one->getTerminator());
                }))
                continue;
            const double here = frequency_of(frequencies, block);
            const auto cost = [&](llvm::BasicBlock* from, unsigned root) {
                return at_end_[numbers_.lookup(from)].test(root) ? 0.0
                                                                 : frequency_of(frequencies, from);
            };
            for (const unsigned root : anticipated_[i].set_bits()) {
                if (at_begin_[i].test(root) || !has_value(root, &block->front(), dominators))
                    continue;
                double costs = 0;
                for (llvm::BasicBlock* from : before) costs += cost(from, root);
                if (costs > worthwhile * here) continue;
                for (llvm::BasicBlock* from : before) wanted_at_end_[from].insert(root);
                any = true;
            }
            for (llvm::PHINode& phi : block->phis()) {
                const auto found = number_of_root_.find(&phi);
                if (found == number_of_root_.end() || joined_.contains(found->second)) continue;
                if (!wanted_in(i, found->second)) continue;
                double costs = 0;
                bool possible = true;
                for (unsigned j = 0; j < phi.getNumIncomingValues(); ++j) {
                    const incoming one =
                        incoming_of(phi.getIncomingValue(j), phi.getIncomingBlock(j), find);
                    possible &= one.possible;
                    if (one.possible && one.from.root != nullptr)
                        costs +=
                            cost(phi.getIncomingBlock(j), number_of_root_.lookup(one.from.root));
                }
                if (!possible || costs > worthwhile * here) continue;
                for (unsigned j = 0; j < phi.getNumIncomingValues(); ++j) {
                    const resolved from = find(phi.getIncomingValue(j));
                    if (from.root == nullptr) continue;
                    const unsigned root = number_of_root_.lookup(from.root);
                    wanted_at_end_[phi.getIncomingBlock(j)].insert(root);
                    if (from.by_difference) difference_used_.set(root);
                }
                joined_.insert(found->second);
                any = true;
            }
        }
        return any;
    }

    // True if the root is certainly wanted in the block, or after it.
    bool wanted_in(unsigned block, unsigned root) const {
        for (const event& one : events_[block]) {
            if (one.what == event::wanted && one.root == root) return true;
            if (one.what == event::safepoint) return false;
        }
        const llvm::BasicBlock* of = order_[block];
        return llvm::succ_begin(of) != llvm::succ_end(of) &&
               llvm::all_of(llvm::successors(of), [&](const llvm::BasicBlock* after) {
                   return anticipated_[numbers_.lookup(after)].test(root);
               });
    }

    // Forwards; on all ways.
    void find_available() {
        const auto count = unsigned(roots_.size());
        std::vector<llvm::BitVector> at_end(order_.size(), llvm::BitVector(count, true));
        std::vector<llvm::BitVector> at_begin(order_.size(), llvm::BitVector(count));
        for (bool changed = true; changed;) {
            changed = false;
            for (unsigned i = 0; i < order_.size(); ++i) {
                llvm::BitVector now(count, i != 0);
                for (llvm::BasicBlock* before : llvm::predecessors(order_[i]))
                    if (i != 0) now &= at_end[numbers_.lookup(before)];
                at_begin[i] = now;
                for (const event& one : events_[i]) {
                    if (one.what == event::wanted || one.what == event::joined) now.set(one.root);
                    if (one.what == event::defined) now.reset(one.root);
                    if (one.what == event::safepoint) now.reset();
                }
                if (now == at_end[i]) continue;
                at_end[i] = std::move(now);
                changed = true;
            }
        }
        at_end_ = std::move(at_end);
        at_begin_ = at_begin;
        for (unsigned i = 0; i < order_.size(); ++i) {
            llvm::BitVector& now = at_begin[i];
            for (event& one : events_[i]) {
                if (one.what == event::wanted) {
                    one.available = now.test(one.root);
                    now.set(one.root);
                }
                if (one.what == event::joined) now.set(one.root);
                if (one.what == event::defined) now.reset(one.root);
                if (one.what == event::safepoint) now.reset();
                if (one.what == event::poll) available_at_[one.at] = now;
            }
        }
    }

    // Backwards: at each poll, the translations that are used after it before they are made again.
    void find_needed() {
        const auto count = unsigned(roots_.size());
        std::vector<llvm::BitVector> at_begin(order_.size(), llvm::BitVector(count));
        const auto through = [&](unsigned i, bool last) {
            llvm::BitVector now(count);
            for (llvm::BasicBlock* after : llvm::successors(order_[i]))
                now |= at_begin[numbers_.lookup(after)];
            for (const event& one : llvm::reverse(events_[i])) {
                if (one.what == event::wanted) {
                    if (one.available)
                        now.set(one.root);
                    else
                        now.reset(one.root);
                }
                if (one.what == event::defined) now.reset(one.root);
                if (one.what == event::safepoint) now.reset();
                if (one.what == event::poll && last) available_at_[one.at] &= now;
            }
            return now;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (auto i = unsigned(order_.size()); i-- > 0;) {
                llvm::BitVector now = through(i, false);
                if (now == at_begin[i]) continue;
                at_begin[i] = std::move(now);
                changed = true;
            }
        }
        for (unsigned i = 0; i < order_.size(); ++i) through(i, true);
    }

    void make_variables() {
        llvm::IRBuilder<> build(&f_.getEntryBlock(), f_.getEntryBlock().begin());
        variables_.resize(roots_.size());
        for (unsigned i = 0; i < roots_.size(); ++i) {
            variables_[i].address = build.CreateAlloca(pointer_);
            allocas_.push_back(variables_[i].address);
            if (!difference_used_.test(i)) continue;
            variables_[i].difference = build.CreateAlloca(word_);
            allocas_.push_back(variables_[i].difference);
        }
    }

    // By a block's number.
    llvm::BitVector seldom_reached(const llvm::BranchProbabilityInfo& probabilities) const {
        llvm::BitVector seldom(unsigned(order_.size()), true);
        if (f_.hasMinSize() || f_.hasFnAttribute(llvm::Attribute::Cold)) return seldom;
        seldom.reset(0);
        for (bool changed = true; changed;) {
            changed = false;
            for (unsigned i = 0; i < order_.size(); ++i) {
                if (seldom.test(i)) continue;
                const llvm::Instruction* end = order_[i]->getTerminator();
                const unsigned ways = end->getNumSuccessors();
                for (unsigned j = 0; j < ways; ++j) {
                    // One of many cases is not unlikely for that.
                    const double share = double(ways > 2 ? ways : 1);
                    const auto taken = probabilities.getEdgeProbability(order_[i], j);
                    const unsigned next = numbers_.lookup(end->getSuccessor(j));
                    if (!seldom.test(next) || share * double(taken.getNumerator()) <
                                                  hardly_ever * double(taken.getDenominator()))
                        continue;
                    seldom.reset(next);
                    changed = true;
                }
            }
        }
        return seldom;
    }

    void insert(const llvm::BitVector& seldom) {
        for (unsigned i = 0; i < order_.size(); ++i)
            for (const event& one : events_[i]) {
                if (one.what == event::wanted && !one.available) {
                    if (!seldom.test(i)) {
                        make(one.root, one.at);
                        continue;
                    }
                    llvm::IRBuilder<> build(one.at);
                    make_slowly(build, one.root, "obase_handles_tested");
                }
                if (one.what == event::poll)
                    for (const unsigned root : available_at_[one.at].set_bits()) {
                        llvm::IRBuilder<> build(one.at->getNextNode());
                        make_slowly(build, root);
                    }
            }
    }

    void make(unsigned root, llvm::Instruction* at) {
        llvm::IRBuilder<> build(at);
        llvm::Value* home = roots_[root];
        llvm::Value* run = build.CreateAnd(
            build.CreateLShr(build.CreatePtrToInt(home, word_), run_bits), (1U << table_bits) - 1);
        llvm::Value* away =
            build.CreateLoad(build.getInt8Ty(), build.CreateIntToPtr(run, table_pointer_));
        build.CreateStore(home, variables_[root].address);
        if (variables_[root].difference != nullptr)
            build.CreateStore(build.getInt64(0), variables_[root].difference);
        llvm::Instruction* slow = llvm::SplitBlockAndInsertIfThen(
            build.CreateICmpNE(away, build.getInt8(0)), at->getIterator(), false,
            weights_.createBranchWeights(1, 1U << 20));
        build.SetInsertPoint(slow);
        make_slowly(build, root);
    }

    // The translations of phis.
    void join() {
        llvm::DominatorTree dominators(f_);
        root_finder find(dominators);
        for (const unsigned root : joined_) {
            auto* phi = llvm::cast<llvm::PHINode>(roots_[root]);
            llvm::IRBuilder<> build(phi);
            llvm::PHINode* made = build.CreatePHI(pointer_, phi->getNumIncomingValues());
            llvm::DenseMap<llvm::BasicBlock*, llvm::Value*> of_block;
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
                llvm::BasicBlock* from = phi->getIncomingBlock(i);
                llvm::Value*& value = of_block[from];
                if (value == nullptr) {
                    const resolved of = find(phi->getIncomingValue(i));
                    build.SetInsertPoint(from->getTerminator());
                    value = of.root == nullptr
                                ? phi->getIncomingValue(i)
                                : now_at(build, phi->getIncomingValue(i),
                                         number_of_root_.lookup(of.root), of.by_difference);
                }
                made->addIncoming(value, from);
            }
            build.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
            build.CreateStore(made, variables_[root].address);
            if (variables_[root].difference != nullptr)
                build.CreateStore(build.CreateSub(build.CreatePtrToInt(made, word_),
                                                  build.CreatePtrToInt(phi, word_)),
                                  variables_[root].difference);
        }
    }

    // The address where it is now; its root's translation is available.
    llvm::Value* now_at(llvm::IRBuilder<>& build, llvm::Value* address, unsigned root,
                        bool by_difference) {
        if (by_difference)
            return build.CreateGEP(build.getInt8Ty(), address,
                                   build.CreateLoad(word_, variables_[root].difference));
        llvm::Value* translation = build.CreateLoad(pointer_, variables_[root].address);
        return moved(build, address, roots_[root], translation);
    }

    void make_slowly(llvm::IRBuilder<>& build, unsigned root,
                     llvm::StringRef by = "obase_handles_translate") {
        llvm::Value* home = roots_[root];
        llvm::CallInst* made = build.CreateCall(state_.names.kept_call(by, true), {home});
        made->addFnAttr(llvm::Attribute::NoUnwind);
        build.CreateStore(made, variables_[root].address);
        if (variables_[root].difference != nullptr)
            build.CreateStore(build.CreateSub(build.CreatePtrToInt(made, word_),
                                              build.CreatePtrToInt(home, word_)),
                              variables_[root].difference);
    }

    // The address as computed from the translation of its root.
    llvm::Value* moved(llvm::IRBuilder<>& build, llvm::Value* address, llvm::Value* root,
                       llvm::Value* translation) {
        if (address == root) return translation;
        if (auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(address)) {
            llvm::Value* base = moved(build, gep->getPointerOperand(), root, translation);
            auto* copy = llvm::cast<llvm::GetElementPtrInst>(gep->clone());
            copy->setOperand(gep->getPointerOperandIndex(), base);
            return build.Insert(copy);
        }
        // A cast, a freeze, or an intrinsic that passes its first operand.
        return moved(build, llvm::cast<llvm::User>(address)->getOperand(0), root, translation);
    }

    void rewrite() {
        llvm::MapVector<llvm::CallBase*, llvm::SmallVector<llvm::Value*, 4>> known;
        for (const access& one : accesses_)
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(one.use->getUser()))
                if (state_.known.contains(call) && !known.contains(call))
                    known[call].assign(call->arg_begin(), call->arg_end());
        for (const access& one : accesses_) {
            auto* user = llvm::cast<llvm::Instruction>(one.use->getUser());
            llvm::IRBuilder<> build(user);
            one.use->set(now_at(build, one.use->get(), one.root, one.by_difference));
        }
        for (const auto& [call, homes] : known) turn_back(*call, homes);
    }

    // What a function of the C library gives becomes a home address.
    void turn_back(llvm::CallBase& call, llvm::ArrayRef<llvm::Value*> homes) {
        const known_function& function = *state_.known.lookup(&call);
        llvm::IRBuilder<> build(call.getNextNode());
        llvm::Value* first = homes.empty() ? nullptr : turned_.lookup(homes[0]);
        const std::size_t end = function.arguments.find('e');
        if (end != llvm::StringRef::npos && call.getArgOperand(0) != homes[0] &&
            !llvm::isa<llvm::ConstantPointerNull>(call.getArgOperand(unsigned(end))))
            build.CreateCall(
                state_.names.named("obase_handles_c_end",
                                   llvm::FunctionType::get(build.getVoidTy(),
                                                           {pointer_, pointer_, pointer_}, false)),
                {call.getArgOperand(unsigned(end)), first != nullptr ? first : homes[0],
                 call.getArgOperand(0)});
        if (function.result == known_function::gives::other || call.use_empty()) return;
        llvm::Value* translated = call.getArgOperand(function.of);
        llvm::Value* home = homes[function.of];
        if (translated == home) return;
        if (llvm::Value* turned = turned_.lookup(home)) home = turned;
        const bool same = function.result == known_function::gives::same;
        llvm::Value* is = same ? build.CreateICmpEQ(&call, translated) : build.CreateIsNull(&call);
        llvm::Value* back =
            same ? home
                 : build.CreateGEP(build.getInt8Ty(), &call,
                                   build.CreateSub(build.CreatePtrToInt(home, word_),
                                                   build.CreatePtrToInt(translated, word_)));
        auto* result = llvm::cast<llvm::Instruction>(same ? build.CreateSelect(is, back, &call)
                                                          : build.CreateSelect(is, &call, back));
        call.replaceUsesWithIf(result, [&](llvm::Use& use) {
            return use.getUser() != is && use.getUser() != back && use.getUser() != result;
        });
        turned_[&call] = result;
    }

    module_state& state_;
    llvm::Function& f_;
    llvm::MDBuilder weights_;
    llvm::PointerType* pointer_;
    llvm::PointerType* table_pointer_;
    llvm::Type* word_;

    llvm::DenseSet<const llvm::CallBase*> polls_;
    llvm::SmallVector<llvm::Value*, 64> roots_;
    llvm::BitVector difference_used_;
    llvm::SmallVector<access, 64> accesses_;
    llvm::SmallPtrSet<const llvm::Loop*, 8> interrupted_; // by safepoints other than polls
    llvm::DenseMap<const llvm::BasicBlock*, llvm::SmallSetVector<unsigned, 4>> wanted_at_end_;
    llvm::DenseMap<const llvm::Value*, unsigned> number_of_root_;
    llvm::SetVector<unsigned> joined_;               // phis whose translation is a phi
    std::vector<llvm::BitVector> at_begin_, at_end_; // what is available
    std::vector<llvm::BitVector> anticipated_;       // wanted on all ways from a block's beginning
    llvm::DenseMap<const llvm::BasicBlock*, unsigned> numbers_;
    llvm::SmallVector<llvm::BasicBlock*, 64> order_;
    std::vector<llvm::SmallVector<event, 8>> events_;
    llvm::DenseMap<const llvm::Instruction*, llvm::BitVector> available_at_;
    llvm::DenseMap<llvm::Value*, llvm::Value*>
        turned_; // results of known functions, by their calls
    llvm::SmallVector<variables, 64> variables_;
    llvm::SmallVector<llvm::AllocaInst*, 64> allocas_;
};

} // namespace

void translate(module_state& state, llvm::Function& f, const poll_plan& plan) {
    translator(state, f).run(plan);
}

} // namespace obase::handles
