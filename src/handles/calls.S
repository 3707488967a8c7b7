/* SPDX-License-Identifier: MIT
 *
 * obase_handles_translate and obase_handles_poll keep all general registers but r11, as clang's preserve_most has it; rax,
 * too, but for a result. The functions behind them are C++, compiled by any compiler.
 */
    .text

    .macro kept_call name, target, result
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    .ifeq \result
    push %rax
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    .endif
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    push %r10
    .cfi_adjust_cfa_offset 8
    call \target
    pop %r10
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    .ifeq \result
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rax
    .cfi_adjust_cfa_offset -8
    .endif
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    kept_call obase_handles_translate, obase_handles_translate_here, 1
    kept_call obase_handles_poll, obase_handles_poll_here, 0

    .section .note.GNU-stack, "", @progbits
