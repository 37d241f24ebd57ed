// States and rewards for the agent from one register, in the order of tests/memory/test_sarsa_long.py;
// prints the number of each action.
module tb;
    reg clk = 0;
    reg rst = 0;
    reg [31:0] x = 32'h12345678;
    reg [1:0] busy = 0;
    reg [1:0] phase = 3;
    reg [1:0] first = 0;
    wire [3:0] action;
    wire begins;
    wire reward = busy == 0 && x[7:0] < 8'd50 + (first << 6);
    integer decisions = 0;
    integer file;

    part dut(
        .clk(clk), .rst(rst), .reward(reward), .action(action), .begins(begins),
        .state_0(x[17:16]), .state_1(x[19:18]), .state_2(x[21:20]), .state_3(x[23:22]),
        .state_4(x[25:24]), .state_5(x[27:26]), .state_6(x[29:28]), .state_7(x[30])
    );

    function [31:0] next(input [31:0] v);
        reg [31:0] a;
        begin
            a = v ^ (v << 13);
            a = a ^ (a >> 17);
            next = a ^ (a << 5);
        end
    endfunction

    initial begin
        file = $fopen("actions.txt", "w");
        while (decisions < DECISIONS) begin
            #1 clk = 1;
            #1 clk = 0;
        end
        $fclose(file);
        $finish;
    end

    parameter DECISIONS = 1000;

    always @(posedge clk) begin
        x <= next(x);
        phase <= phase + 1;
        busy <= reward ? 3 : busy == 0 ? 0 : busy - 1;
        if (phase == 3) first <= x[17:16];
        if (begins) begin
            $fwrite(file, "%h", action);
            decisions = decisions + 1;
        end
    end
endmodule
