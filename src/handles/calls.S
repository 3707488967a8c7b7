/* SPDX-License-Identifier: MIT
 *
 * What compiled code calls in the midst of its own: obase_handles_translate_%rdi and so on translate the register of their
 * name in place, obase_handles_poll_framed polls. They keep all other registers but r11 and the flags, and need no alignment
 * of the stack and no red zone. Most translations are made by what obase_handles_translate_chosen says, which uses general registers
 * only (translate.cpp); around what may use others the processor saves its state: some 50 ns.
 *
 * obase_handles_translate and obase_handles_poll keep all general registers but r11, as clang's preserve_most has it; rax,
 * too, but for a result; vector registers are lost. The functions behind them are C++, compiled by any compiler.
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

    .macro framed name, target, from, to
    .globl "\name"
    .type "\name", @function
    .p2align 4
"\name":
    .cfi_startproc
    .irp register, %rax, %rcx, %rdx, %rsi, %rdi, %r8, %r9, %r10
    push \register
    .cfi_adjust_cfa_offset 8
    .endr
    .ifnb \to
    .ifnb \from
    mov \from, %rdi
    .endif
    call *obase_handles_translate_chosen(%rip)
    test %rax, %rax
    jnz 1f
    mov \to, %rdi
    lea \target(%rip), %r11
    call obase_handles_call_with_state
1:  mov %rax, \to
    .else
    lea \target(%rip), %r11
    call obase_handles_call_with_state
    .endif
    .irp register, %r10, %r9, %r8, %rdi, %rsi, %rdx, %rcx, %rax
    pop \register
    .cfi_adjust_cfa_offset -8
    .endr
    ret
    .cfi_endproc
    .size "\name", . - "\name"
    .endm

    /* The whole of a translation, for places that are seldom reached. */
    .macro tested register
    .globl "obase_handles_tested_\register"
    .type "obase_handles_tested_\register", @function
    .p2align 4
"obase_handles_tested_\register":
    .cfi_startproc
    mov \register, %r11
    shr $16, %r11
    and $0xffffff, %r11d
    cmpb $0, %gs:(%r11)
    jne "obase_handles_translate_\register"
    ret
    .cfi_endproc
    .size "obase_handles_tested_\register", . - "obase_handles_tested_\register"
    .endm

    /* Calls what r11 points to, between a save and a restore of all that is no general register. The area and its parts are
       vector_state.cpp's to say; 0: the processor has fxsave only. */
    .globl obase_handles_call_with_state
    .hidden obase_handles_call_with_state
    .type obase_handles_call_with_state, @function
    .p2align 4
obase_handles_call_with_state:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %rbx
    .cfi_offset %rbx, -24
    mov obase_handles_state_bytes(%rip), %rax
    test %rax, %rax
    jz 1f
    sub %rax, %rsp
    and $-64, %rsp
    xor %edx, %edx
    .irp at, 512, 520, 528, 536, 544, 552, 560, 568 /* its header */
    mov %rdx, \at(%rsp)
    .endr
    mov obase_handles_state_parts(%rip), %eax
    xsave64 (%rsp)
    call *%r11
    mov %rax, %rbx
    xor %edx, %edx
    mov obase_handles_state_parts(%rip), %eax
    xrstor64 (%rsp)
    jmp 2f
1:  sub $512, %rsp
    and $-64, %rsp
    fxsave64 (%rsp)
    call *%r11
    mov %rax, %rbx
    fxrstor64 (%rsp)
2:  mov %rbx, %rax
    mov -8(%rbp), %rbx
    mov %rbp, %rsp
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size obase_handles_call_with_state, . - obase_handles_call_with_state

    /* Where a register's value is while the function behind is called: where it was, or on the stack. */
    .irp register, %rbx, %rbp, %r12, %r13, %r14, %r15
    framed "obase_handles_translate_\register", obase_handles_translate_here, \register, \register
    .endr
    framed "obase_handles_translate_%r10", obase_handles_translate_here, %r10, 0(%rsp)
    framed "obase_handles_translate_%r9", obase_handles_translate_here, %r9, 8(%rsp)
    framed "obase_handles_translate_%r8", obase_handles_translate_here, %r8, 16(%rsp)
    framed "obase_handles_translate_%rdi", obase_handles_translate_here, , 24(%rsp)
    framed "obase_handles_translate_%rsi", obase_handles_translate_here, %rsi, 32(%rsp)
    framed "obase_handles_translate_%rdx", obase_handles_translate_here, %rdx, 40(%rsp)
    framed "obase_handles_translate_%rcx", obase_handles_translate_here, %rcx, 48(%rsp)
    framed "obase_handles_translate_%rax", obase_handles_translate_here, %rax, 56(%rsp)
    .irp register, %rax, %rbx, %rcx, %rdx, %rsi, %rdi, %rbp, %r8, %r9, %r10, %r12, %r13, %r14, %r15
    tested \register
    .endr
    framed "obase_handles_poll_framed", obase_handles_poll_here

    kept_call obase_handles_translate, obase_handles_translate_here, 1
    kept_call obase_handles_poll, obase_handles_poll_here, 0

    .section .note.GNU-stack, "", @progbits
