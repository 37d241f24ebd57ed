; A matrix of 3 x 4 numbers by a vector, from the parameters' address on; the result follows.
    li r10, #4                      ; columns
    li r11, #3                      ; rows
    li r12, #12                     ; elements of the matrix
    li r20, #0                      ; scratchpad: matrix
    li r21, #32                     ; vector
    li r22, #64                     ; result
    set.vl r10
    set.mr r11
    ld.sram [16-bit] r20, r5, r12   ; r5: address of the parameters
    add r6, r5, #24
    ld.sram [16-bit] r21, r6, r10
    m.v.mul.add [16-bit] r22, r20, r21  ; any operation with any reduction
    v.drain
    add r6, r5, #32
    st.sram [16-bit] r6, r22, r11
    halt
