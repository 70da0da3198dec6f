// Grows with its first type.
