"""Common parts of kernels: the builder of programs, fixed point, schedules, feature maps."""
