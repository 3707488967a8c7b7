// SPDX-License-Identifier: MIT
//
// The plugin: one module pass at the start of the pipeline, at every optimization level; and from -O2 on one for the loops
// (walks.cpp).
//
//     clang++ -fpass-plugin=obase_passes.so ...
//     opt -load-pass-plugin=obase_passes.so -passes=obase ...
//
// The protocol is atc with -obase-protocol=atc among LLVM's options, which must know the plugin by then:
//
//     clang++ -fplugin=obase_passes.so -fpass-plugin=obase_passes.so
//             -Xclang -mllvm -Xclang -obase-protocol=atc ...
//
// It works on its own, but then only knows what the source says (OBASE_GUIDED, OBASE_ENTRY,
// OBASE_INTERNAL); the front end's plugin says it for all functions, and refuses what the IR does not
// show, such as a struct copied as bytes.
#include "instrumentation.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>

namespace {

using obase::passes::protocol;

const llvm::cl::opt<protocol> chosen_protocol(
    "obase-protocol", llvm::cl::desc("What the words of marked pointers mean"),
    llvm::cl::values(clEnumValN(protocol::arming, "arming", "armed words (default)"),
                     clEnumValN(protocol::atc, "atc", "counts of active threads")),
    llvm::cl::init(protocol::arming));

class instrument : public llvm::PassInfoMixin<instrument> {
  public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
        using namespace obase::passes;
        // Once: `opt` with a pass and a pipeline runs it twice, and so does LTO.
        if (module.getNamedMetadata(done) != nullptr) return llvm::PreservedAnalyses::all();
        module.getOrInsertNamedMetadata(done);

        auto& of_functions =
            analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
        choose_protocol(module, chosen_protocol);
        problems errors(module);
        marks said = read_marks(module);
        add_managing_twins(said);
        slots fields = find_slots(module, of_functions, said, errors);
        const allocations allocated = find_allocations(module, fields, said);
        const scope_plan plan = plan_scopes(module, fields, said, errors);
        trust accepted;
        check_escapes(module, fields, allocated, said, plan, errors, accepted);
        check_owners(module, fields, allocated, plan, errors);
        accepted.write(module, errors);
        warn_of_unreached(module, fields, said, errors);
        // With an error there will be no object file, so the module may stay as it is.
        if (!errors.any()) {
            end_overwritten_slots(module, fields, said);
            make_site_table(module, fields, said, plan);
            convert_accesses(module, fields);
            convert_allocations(module, allocated);
            inline_scopes(module, insert_scopes(module, fields, said, plan, errors));
            end_operations_at_jumps(module);
            tell_runtime(module);
        }
        return llvm::PreservedAnalyses::none();
    }
    // Also for functions with optnone.
    static bool isRequired() { return true; }

  private:
    static constexpr const char* done = "obase.instrumented";
};

void add_to(llvm::PassBuilder& builder) {
    builder.registerPipelineStartEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
            passes.addPass(instrument());
        });
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel level) {
            if (level.getSpeedupLevel() >= 2) passes.addPass(obase::passes::unroll_walks());
        });
    builder.registerPipelineParsingCallback([](llvm::StringRef name,
                                               llvm::ModulePassManager& passes,
                                               llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name != "obase") return false;
        passes.addPass(instrument());
        return true;
    });
}

} // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "obase", "0.1", &add_to};
}
