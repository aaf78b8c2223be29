"""WeightProgramBench: an ``edits`` answer is parsed into the weights of a 600-32-32-6 network, which then plays."""
