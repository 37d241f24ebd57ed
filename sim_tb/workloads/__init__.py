"""Work for machines in several rooms: traffic, tiles of kernels, and the certificate."""
