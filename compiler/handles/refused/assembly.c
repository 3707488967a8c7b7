// SPDX-License-Identifier: MIT
// refused: whether it writes the address cannot be seen
void* exchange(void** slot, void* value) {
    __asm__ volatile("movq %1, %0" : "=m"(*slot) : "r"(value));
    return value;
}
int main(void) { return 0; }
