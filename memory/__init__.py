"""A vault's memory: controller, back ends, and the model of the DRAM devices."""
