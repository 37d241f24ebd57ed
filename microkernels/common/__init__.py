"""What kernels share: the builder of programs, fixed point, schedules, feature maps."""
