"""What kernels of all workloads share: assembly writers, fixed point, schedules, feature maps."""
