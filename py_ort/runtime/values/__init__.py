"""What goes into runs and comes out of them: values, where they are, and how they are bound by name."""
