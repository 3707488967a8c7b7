// SPDX-License-Identifier: MIT
// refused: gets two addresses in registers and may write memory
void release(void** slot, void* value) {
    __asm__ volatile("movq %1, (%0)" : : "r"(slot), "r"(value) : "memory");
}
int main(void) { return 0; }
