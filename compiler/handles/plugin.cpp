// SPDX-License-Identifier: MIT
//
// The plugin: one module pass at the end of LLVM's optimizer, at every optimization level.
//
//     clang -fpass-plugin=obase_handles.so ...
//     opt -load-pass-plugin=obase_handles.so -passes=obase-handles ...
#include "handles.hpp"

#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

namespace {

class use_handles : public llvm::PassInfoMixin<use_handles> {
  public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
        using namespace obase::handles;
        // Once: with LTO the pipeline runs again.
        if (module.getNamedMetadata(done) != nullptr) return llvm::PreservedAnalyses::all();
        module.getOrInsertNamedMetadata(done);
        if (refuse(module)) return llvm::PreservedAnalyses::all();
        give_objects(module);
        module_state state(module);
        make_bodies(state);
        convert_allocation(state);
        convert_calls(state);
        for (auto& [f, plan] : plan_polls(state)) translate(state, *f, plan);
        return llvm::PreservedAnalyses::none();
    }
    // Also for functions with optnone.
    static bool isRequired() { return true; }

  private:
    static constexpr const char* done = "obase.handles";
};

void add_to(llvm::PassBuilder& builder) {
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
            passes.addPass(use_handles());
        });
    builder.registerPipelineParsingCallback([](llvm::StringRef name,
                                               llvm::ModulePassManager& passes,
                                               llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name != "obase-handles") return false;
        passes.addPass(use_handles());
        return true;
    });
}

} // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "obase-handles", "0.1", &add_to};
}
