"""A vault's memory: controller, star, back ends, and the model of the DRAM devices."""
