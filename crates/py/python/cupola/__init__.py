"""Arrays, transforms and machine learning on the CPU and the GPU."""
