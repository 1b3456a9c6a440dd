"""What is measured: cases, options, types, metrics and the arithmetic of their work. Leaves."""
