"""What people ask with: why a gradient is what it is, what a function costs, passes of their own."""
