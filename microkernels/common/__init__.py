"""Parts shared by kernels: the program builder, fixed point, schedules, feature maps."""
