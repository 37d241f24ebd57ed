; Two iterations of belief propagation on 8 x 8 pixels of 4 labels, for a very small engine.
; Memory: 16 smoothness costs of pairs of labels, symmetric; then of each pixel, row by row, the
; messages that arrive moving up and down, its data costs, the messages moving left and right.
.equ LABELS, 4
.equ SIDE, 8
.equ VECTOR, 2 * LABELS
.equ MATRIX, LABELS * VECTOR
.equ PIXEL, 5 * VECTOR
.equ ROW, SIDE * PIXEL
.equ END, MATRIX + SIDE * ROW
; What a sweep reads, and its messages, in the record of a pixel.
.equ ACROSS, 0
.equ DOWNWARD, 2 * VECTOR
.equ UP, 0
.equ DOWN, VECTOR
.equ LEFT, 3 * VECTOR
.equ RIGHT, 4 * VECTOR
    mov r1, #LABELS
    mov r2, #LABELS * LABELS
    mov r3, #3 * LABELS
    mov r4, #2                      ; iterations left
    mov r5, #MATRIX                 ; scratchpad, after the matrix: what a sweep reads, and sums
    mov r6, #MATRIX + VECTOR
    mov r7, #MATRIX + 2 * VECTOR
    mov r8, #MATRIX + 3 * VECTOR    ; the message
    set.vl r1
    set.mr r1
    ld.sram [16-bit] r0, r0, r2
right:
    mov r9, #MATRIX + ACROSS        ; memory: what the first pixel of a line reads
    mov r10, #RIGHT - ACROSS        ; from there to its message
    mov r13, #PIXEL                 ; to the next pixel
    mov r14, #ROW                   ; to the next line
    jmp sweep
left:
    mov r9, #MATRIX + ROW - PIXEL + ACROSS
    mov r10, #LEFT - ACROSS
    mov r13, #-PIXEL
    jmp sweep
down:
    mov r9, #MATRIX + DOWNWARD
    mov r10, #DOWN - DOWNWARD
    mov r13, #ROW
    mov r14, #PIXEL
    jmp sweep
up:
    mov r9, #END - ROW + DOWNWARD
    mov r10, #UP - DOWNWARD
    mov r13, #-ROW
sweep:
    mov r2, #SIDE                   ; lines left
line:
    mov r15, #SIDE - 1              ; messages left
    mov r11, r9
    add r12, r9, r10
    ld.sram [16-bit] r8, r12, r1
pixel:
    ld.sram [16-bit] r5, r11, r3
    add r12, r12, r13
    v.v.add [16-bit] r5, r5, r6
    v.drain
    v.v.add [16-bit] r5, r5, r7
    v.drain
    v.v.add [16-bit] r5, r5, r8
    v.drain
    m.v.add.min [16-bit] r6, r0, r5
    v.drain
    v.s.sub [16-bit] r8, r6, r6
    v.drain
    st.sram [16-bit] r12, r8, r1
    add r11, r11, r13
    sub r15, r15, #1
    bne r15, r0, pixel
    add r9, r9, r14
    sub r2, r2, #1
    bne r2, r0, line
    memfence
    mov r2, #PIXEL
    beq r13, r2, left
    mov r2, #-PIXEL
    beq r13, r2, down
    mov r2, #ROW
    beq r13, r2, up
    sub r4, r4, #1
    bne r4, r0, right
    halt
